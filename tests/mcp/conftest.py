"""A workspace that holds a real MCP server, and an agent's sandbox with a real client."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.mcp.host import Ground, Services
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.spec import Bind, Bounds, Command, Data, Finished, Tmpfs

HERE = Path(__file__).parent
Call = tuple[str, dict[str, str]]
Ask = Callable[..., Finished]


@pytest.fixture(scope="session")
def sandbox() -> Bubblewrap:
    return make_bubblewrap()


@pytest.fixture
def ground(sandbox: Bubblewrap, tmp_path: Path) -> Ground:
    """A start state with the server and a file in it."""
    start = tmp_path / "start"
    start.mkdir()
    (start / "server.py").write_bytes((HERE / "server.py").read_bytes())
    (start / "notes.txt").write_text("as it was at the start\n")
    for path in (start, *start.iterdir()):
        sandbox.identity.own(path)
    return Ground(sandbox, (Bind(start, "/workspace"),), Bounds(), 60.0)


@pytest.fixture
def ask(sandbox: Bubblewrap) -> Ask:
    """Call tools of a server from an agent's sandbox, whose workspace is empty."""

    def call(services: Services, name: str, *calls: Call, timeout: float = 60.0) -> Finished:
        program = Data("/opt/wfbench/client.py", (HERE / "client.py").read_bytes())
        told = json.dumps([services.commands[name], calls])
        mounts = (Tmpfs("/workspace", 1 << 20), program, *services.mounts)
        return sandbox.run(Command(("python3", "/opt/wfbench/client.py", told), mounts, timeout))

    return call
