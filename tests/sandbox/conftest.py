"""What the tests of the sandbox share: the machine's real bubblewrap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.spec import Command, Finished, Mount, Tmpfs

Shell = Callable[..., Finished]


@pytest.fixture(scope="session")
def sandbox() -> Bubblewrap:
    return make_bubblewrap()


@pytest.fixture
def shell(sandbox: Bubblewrap) -> Shell:
    """Run a bash script in a sandbox with an empty workspace."""

    def run(script: str, *mounts: Mount, timeout: float = 20, **options: object) -> Finished:
        empty = Tmpfs("/workspace", 1 << 20)
        command = Command(("/bin/bash", "-c", script), (empty, *mounts), timeout, **options)  # type: ignore[arg-type]
        return sandbox.run(command)

    return run


@pytest.fixture
def owned(tmp_path: Path, sandbox: Bubblewrap) -> Callable[[str], Path]:
    """Make a directory that belongs to the sandbox's identity."""

    parent = tmp_path / "cell"
    parent.mkdir()
    sandbox.identity.own(parent)

    def make(name: str) -> Path:
        path = parent / name
        path.mkdir()
        return sandbox.identity.own(path)

    return make
