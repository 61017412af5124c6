"""Directories of the sandbox's identity."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.identity import choose_identity, shelves


@pytest.mark.parametrize("sandbox", ["bwrap", "host"])
def test_shelves_are_closed_to_others(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of repositories lie where nobody but the sandbox's identity can enter."""
    monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    identity = choose_identity()
    status = shelves(identity, sandbox).stat()  # type: ignore[arg-type]
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert status.st_uid == identity.uid
