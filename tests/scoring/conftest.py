"""What the tests of oracles share: the machine's sandbox, a workspace, and an oracle of any files and command."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_wfbench.matrix.hidden import Captured, Expectation, HiddenFiles
from pytest_wfbench.matrix.task import OracleSpec
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.spec import Bounds, Mount, Overlay
from pytest_wfbench.scoring.oracle import Oracle

MakeOracle = Callable[..., Oracle]
MakeWorkspace = Callable[..., tuple[Mount, ...]]


@pytest.fixture(scope="session")
def sandbox() -> Bubblewrap:
    return make_bubblewrap()


@pytest.fixture
def place(sandbox: Bubblewrap) -> Iterator[Path]:
    """A directory that the sandbox's identity can reach and owns."""
    path = Path("/tmp") / f"wfbench-oracle-{uuid.uuid4().hex[:8]}"
    path.mkdir(mode=0o755)
    sandbox.identity.own(path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def workspace(sandbox: Bubblewrap, place: Path) -> MakeWorkspace:
    """Make check mounts over files."""

    def make(**files: str) -> tuple[Mount, ...]:
        root = place / "tree"
        root.mkdir(exist_ok=True)
        for name, text in {"README": "hello\n", **files}.items():
            path = root / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for path in (root, *root.rglob("*")):
            sandbox.identity.own(path)
        return (Overlay((root,), "/workspace", "tmp"),)

    return make


@pytest.fixture
def oracle(sandbox: Bubblewrap, place: Path) -> MakeOracle:
    """Make an oracle: its command, its files by target, and for a junit one the tests it must show."""

    def make(
        command: str, files: dict[str, str] | None = None, tests: list[str] | None = None, timeout: float = 20
    ) -> Oracle:
        files = files or {"check.sh": "exit 0\n"}
        junit = "WFBENCH_ORACLE_RESULTS" in command
        spec = OracleSpec.model_construct(command=command, files=(), results="junit" if junit else "exit")
        hidden = HiddenFiles(
            oracle=tuple(Captured(name=name, data=text.encode()) for name, text in files.items()),
            expected=None if tests is None else Expectation(oracle_digest="x", tests=tuple(tests)),
        )
        scratch = place / "scratch"
        scratch.mkdir(exist_ok=True)
        owner = (sandbox.identity.uid, sandbox.identity.gid)
        return Oracle(spec, hidden, sandbox, scratch, owner, timeout, Bounds())

    return make
