"""What a sandbox sees of the harness's own Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.interpreter import own_interpreter


def environment(root: Path, prefix: str, monkeypatch: pytest.MonkeyPatch, base: str | None = None) -> None:
    """Pretend that this process runs from an environment below a home, whose ``python3`` is a link in ``.local``."""
    real = root / "opt/py/bin/python3.11"
    for path in (real, root / f"home/{prefix}/bin/x", root / f"home/{prefix}/lib/x", root / "home/.local/bin/x"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (root / "home/.local/bin/python3").symlink_to(real)
    inner = root / f"home/{prefix}/bin/python3"
    if not inner.is_symlink():
        inner.symlink_to(root / "home/.local/bin/python3")
    monkeypatch.setenv("HOME", str(root / "home"))
    monkeypatch.setattr(sys, "prefix", str(root / "home" / prefix))
    monkeypatch.setattr(sys, "base_prefix", base or str(root / "opt/py"))
    monkeypatch.setattr(sys, "executable", str(inner))
    monkeypatch.setattr(sys, "_base_executable", str(real))


def test_a_link_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment and installation are mounted whole; of what lies between them there is the link alone."""
    environment(tmp_path, "venv", monkeypatch)
    found = own_interpreter()
    assert found.directories == (tmp_path / "home/venv", tmp_path / "opt/py")
    assert found.links == ((str(tmp_path / "opt/py/bin/python3.11"), str(tmp_path / "home/.local/bin/python3")),)


@pytest.mark.parametrize("prefix", [".", ".local"])
def test_an_environment_that_is_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    """Where the environment is the home itself, or its .local, only what is Python's of it is mounted."""
    environment(tmp_path, prefix, monkeypatch)
    place = tmp_path / "home" / prefix
    inside = [path for path in own_interpreter().directories if path.is_relative_to(tmp_path / "home")]
    assert inside == [place / "bin", place / "lib"]
