"""Directories that are not for agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.workspace.beside import UnfitDirectory, directory_digest
from pytest_wfbench.workspace.personal import personal_part
from pytest_wfbench.workspace.repository import RepositoryProblem, resolve


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with keys and a project."""
    for name in (".ssh/keys", "project"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", [".", ".ssh", ".ssh/keys", "project/link"])
def test_home(home: Path, name: str) -> None:
    """Neither a repository nor a directory beside the workspace shows the keys in a home, also by a link."""
    (home / "project/link").symlink_to(home / ".ssh")
    with pytest.raises(RepositoryProblem, match="no agent is shown"):
        resolve(home / name, None)
    with pytest.raises(UnfitDirectory, match=r"no agent is shown|no link"):
        directory_digest(home / name)
    assert personal_part(home / "project") is None


def test_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home, as in some containers, has nothing there that could be shown."""
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert personal_part(tmp_path) is None
    assert personal_part(Path("/etc")) == Path("/etc")


@pytest.mark.parametrize("name", ["/", "/etc", "/etc/ssl", "/proc/self", "/dev", "/run"])
def test_machine(name: str) -> None:
    """What is the machine's own is shown to nobody: root could read it all."""
    with pytest.raises(RepositoryProblem, match="no agent is shown"):
        resolve(Path(name), None)
    with pytest.raises(UnfitDirectory, match=r"no agent is shown|no link"):
        directory_digest(Path(name))
