"""A case file with its oracle root, written as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.matrix.load import Loaded, load_cases
from pytest_wfbench.matrix.load_arms import LoadedArms, load_arms

TASK = """\
kind: implementation
tasks:
  - id: one
    repo: repo
    prompt: Do it.
    verify: "true"
    oracle: {command: sh $WFBENCH_ORACLE_ROOT/check.sh, files: [{source: check.sh, target: check.sh}], results: exit}
"""

Read = Callable[..., Loaded]
ReadArms = Callable[[str | bytes], LoadedArms]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors show paths relative to the working directory, so texts are the same everywhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oracles").mkdir()
    (tmp_path / "oracles" / "check.sh").write_text("exit 0\n")


def _write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Load case files given as texts; they are named a.cases.yaml, b.cases.yaml, …"""

    def load(*texts: str | bytes) -> Loaded:
        return load_cases([_write(tmp_path / f"{'abcdef'[i]}.cases.yaml", text) for i, text in enumerate(texts)])

    return load


@pytest.fixture
def read_arms(tmp_path: Path) -> ReadArms:
    """Load an arms file given as text."""
    return lambda text: load_arms(_write(tmp_path / "arms.yaml", text))
