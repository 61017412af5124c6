"""Directories that are not for agents."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
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


@pytest.mark.parametrize("name", [".netrc", ".claude", ".cargo/credentials.toml", ".local/share/keyrings"])
def test_keys_of_programs(home: Path, name: str) -> None:
    """What programs keep for a user is no agent's, nor is a directory that holds it; what lies beside it may be."""
    place = home / name
    place.mkdir(parents=True)
    beside = place.parent / "registry"
    beside.mkdir()
    with pytest.raises(UnfitDirectory, match="no agent is shown"):
        directory_digest(place)
    assert personal_part(place.parent) is not None
    assert personal_part(beside) is None


def test_home_that_is_lived_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without keys, as a CI job has in its checkout, may be shown until somebody has worked in it."""
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert personal_part(tmp_path / "user") is None
    (tmp_path / "user/.bash_history").touch()
    for holder in (tmp_path, tmp_path / "user"):
        with pytest.raises(RepositoryProblem, match="no agent is shown"):
            resolve(holder, None)


def _git(path: Path, *words: str) -> str:
    named = ("-c", "user.name=n", "-c", "user.email=e", "-C", str(path))
    return subprocess.run(["git", *named, *words], check=True, capture_output=True, text=True).stdout.strip()


def _named(lent: Path, path: Path) -> None:
    (path / ".git").write_text(f"gitdir: {lent}\n")


def _common(lent: Path, path: Path) -> None:
    for name in ("objects", "refs"):
        (path / ".git" / name).mkdir(parents=True)
    (path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (path / ".git/commondir").write_text(f"{lent}\n")


def _own(lent: Path, path: Path) -> Path:
    _git(path, "init", "-q", "-b", "main")
    (path / ".git/refs/heads/main").write_text(_git(lent, "rev-parse", "main") + "\n")
    return path / ".git/objects"


def _alternates(lent: Path, path: Path) -> None:
    between = path.parent / "between"
    (between / "info").mkdir(parents=True)
    (between / "info/alternates").write_text(f"# comment\n{lent / 'objects'}\n")
    (_own(lent, path) / "info/alternates").write_text("../../../between\n")


def _linked(lent: Path, path: Path) -> None:
    objects = _own(lent, path)
    for place in (lent / "objects").glob("??"):
        (objects / place.name).symlink_to(place)


def _linked_files(lent: Path, path: Path) -> None:
    objects = _own(lent, path)
    for place in (lent / "objects").glob("??/*"):
        (objects / place.parent.name).mkdir(exist_ok=True)
        (objects / place.parent.name / place.name).symlink_to(place)


@pytest.mark.parametrize("borrow", [_named, _common, _alternates, _linked, _linked_files])
def test_borrowed(home: Path, borrow: Callable[[Path, Path], None]) -> None:
    """A repository shows nothing of one that is personal, however it borrows from it."""
    personal = home / ".ssh"
    (personal / "id").write_text("a key")
    _git(personal, "init", "-q", "-b", "main")
    _git(personal, "add", ".")
    _git(personal, "commit", "-qm", "keys")
    path = home / "project/repo"
    path.mkdir()
    borrow(personal / ".git", path)
    with pytest.raises(RepositoryProblem, match=r"no agent is shown .*\.ssh"):
        resolve(path, "main")


def test_borrowed_from_no_plain_text(home: Path) -> None:
    """git quotes some names of what is borrowed from: none gets by for that."""
    path, odd = home / "project/repo", home / 'project/odd"name'
    for place in (path, odd):
        place.mkdir()
        _git(place, "init", "-q", "-b", "main")
    _git(odd, "commit", "-q", "--allow-empty", "-m", "x")
    _own(odd / ".git", path)
    (path / ".git/objects/info/alternates").write_text(f"{odd}/.git/objects\n")
    with pytest.raises(RepositoryProblem, match="borrows objects from a path that is no plain text"):
        resolve(path, "main")
