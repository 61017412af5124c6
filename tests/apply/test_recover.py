"""Finishing what was cut short: after further edits, twice, and with a recovery file that somebody tampered with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.apply import transaction
from pytest_wfbench.apply.errors import Faulted
from pytest_wfbench.apply.swap import Swap, link_and_rename, swap
from pytest_wfbench.cli import main

from .conftest import Ground
from .test_killed import ended, started

FILE, SKILLS = ".claude/skills/work/SKILL.md", ".claude/skills/work"
MINE = b"somebody's own edit\n"


def cut(ground: Ground, step: str, swapping: Swap = swap) -> None:
    """Kill an apply before a step, or, for ``drop``, once its files are the new ones."""

    def kill(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def act() -> None:
        if step == "drop":
            transaction._drop = lambda work, done: kill("drop")
        ground.apply(kill, swapping)

    assert ended(started(act)) == -signal.SIGKILL
    assert ground.strays()


def recover(ground: Ground, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["apply", "--recover", "--to", str(ground.path)])
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.mark.parametrize("swapping", [swap, link_and_rename], ids=["exchange", "link"])
@pytest.mark.parametrize(("step", "state"), [("verify", "old"), ("drop", "new")])
def test_twice(ground: Ground, capsys: pytest.CaptureFixture[str], step: str, state: str, swapping: Swap) -> None:
    """It ends in one of both states; a second time nothing is left to be done, and an apply is refused no more."""
    cut(ground, step, swapping)
    assert recover(ground, capsys)[0] == 0
    assert (ground.state(), ground.strays()) == (state, [])
    assert recover(ground, capsys) == (0, f"nothing to recover in {ground.path}\n")


@pytest.mark.parametrize("how", ["written", "renamed"])
@pytest.mark.parametrize(("step", "state"), [("verify", "old"), ("drop", "new")])
def test_edited_since(ground: Ground, capsys: pytest.CaptureFixture[str], step: str, state: str, how: str) -> None:
    """What somebody made of a file after the kill is theirs; all others end as they would have."""
    cut(ground, step)
    if how == "written":
        (ground.path / FILE).write_bytes(MINE)
    else:
        (ground.path / "draft").write_bytes(MINE)
        (ground.path / "draft").rename(ground.path / FILE)
    recover(ground, capsys)
    assert (ground.path / FILE).read_bytes() == MINE
    assert (ground.state(but=[FILE]), ground.strays()) == (state, [])
    assert recover(ground, capsys)[1].startswith("nothing to recover")


@pytest.mark.parametrize(("step", "told"), [("verify", True), ("drop", False)])
def test_directory_gone(ground: Ground, capsys: pytest.CaptureFixture[str], step: str, told: bool) -> None:
    """A directory that somebody removed since keeps nothing from being finished, and no later apply out."""
    cut(ground, step)
    shutil.rmtree(ground.path / SKILLS)
    status, said = recover(ground, capsys)
    assert (status, f"{FILE}: its directory was removed or moved away" in said) == (0, told)
    gone = [f"{SKILLS}/{name}" for name in ("SKILL.md", "more.md", "new/added.md")]
    assert (ground.state(but=gone), ground.strays()) == ("old" if told else "new", [])


def test_something_left(ground: Ground, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where a file cannot be reached any more it says so, and does not end well until that is mended."""
    cut(ground, "verify")
    (ground.path / SKILLS).rename(tmp_path / "elsewhere")
    (ground.path / SKILLS).symlink_to(tmp_path / "elsewhere")
    status, said = recover(ground, capsys)
    assert status == 1
    assert f"{FILE}: 'work' is a link or a file, not a directory." in said
    assert (tmp_path / "elsewhere/SKILL.md").read_bytes() == ground.new[FILE]
    (ground.path / SKILLS).unlink()
    (tmp_path / "elsewhere").rename(ground.path / SKILLS)
    assert recover(ground, capsys)[0] == 0
    assert (ground.state(), ground.strays()) == ("old", [])


CHANGE = {"path": FILE, "base": "sha256:1", "new": "sha256:2"}
UNREAD = "does not read as a recovery file"


@pytest.mark.parametrize("mark", ["", ".done"], ids=["undone", "done"])
@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"changes": [CHANGE | {"path": "../outside/file"}]}, "'../outside/file' leaves the repository"),
        ({"changes": [CHANGE | {"path": "/outside/file"}]}, "'/outside/file' leaves the repository"),
        ({"changes": [CHANGE | {"path": "a\0b"}]}, "'a\\x00b' leaves the repository"),
        ({"changes": [CHANGE | {"path": "\x1b[31m/../x"}]}, "leaves the repository"),
        ({"changes": [CHANGE | {"path": "x" * 5000 + "/y"}]}, "File name too long"),
        ({"changes": [CHANGE], "more": 1}, UNREAD),
        ({"changes": [CHANGE] * 5000}, UNREAD),
        ([], UNREAD),
    ],
)
def test_tampered(ground: Ground, capsys: pytest.CaptureFixture[str], mark: str, plan: Any, said: str) -> None:
    """A recovery file that names what is not of the repository, or is none, moves nothing and does not end well."""
    (ground.path.parent / "outside").mkdir()
    (ground.path.parent / "outside/file").write_bytes(MINE)
    (ground.path / f".wfbench-recovery-0123456789ab{mark}.json").write_text(json.dumps(plan))
    before = ground.files()
    status, told = recover(ground, capsys)
    assert (status, ground.files()) == (1, before), told
    assert said in told
    assert "\x1b" not in told
    assert (ground.path.parent / "outside/file").read_bytes() == MINE


@pytest.mark.parametrize("mark", ["", ".done"], ids=["undone", "done"])
def test_directories_outside(ground: Ground, capsys: pytest.CaptureFixture[str], mark: str) -> None:
    """No directory beyond the repository is removed, and none in it that is not empty."""
    outside = ground.path.parent / "outside"
    outside.mkdir()
    plan = {"changes": [], "directories": ["../outside", str(outside), "a\0b", "..", ".", ".claude", "x" * 5000]}
    (ground.path / f".wfbench-recovery-0123456789ab{mark}.json").write_text(json.dumps(plan))
    assert recover(ground, capsys)[0] == 0
    assert outside.is_dir()
    assert (ground.state(), ground.strays()) == ("old", [])


@pytest.mark.parametrize("how", ["link", "pipe", "directory"])
def test_no_recovery_file(ground: Ground, capsys: pytest.CaptureFixture[str], how: str) -> None:
    """What has the name of a recovery file and is none is not followed, and not waited for."""
    place = ground.path / ".wfbench-recovery-0123456789ab.json"
    if how == "link":
        (ground.path.parent / "plan.json").write_text(json.dumps({"changes": []}))
        place.symlink_to(ground.path.parent / "plan.json")
    elif how == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    status, told = recover(ground, capsys)
    assert (status, UNREAD in told) == (1, True)


def test_hard_link(ground: Ground) -> None:
    """A second name of a file, outside or as the mirror, is no way to write to another file."""
    outside = ground.path.parent / "outside.md"
    os.link(ground.path / FILE, outside)
    mirror = ground.path / "mirror/skills/work/SKILL.md"
    mirror.unlink()
    os.link(ground.path / FILE, mirror)
    ground.apply()
    assert (ground.state(), outside.read_bytes()) == ("new", ground.old[FILE])


READ_ONLY = """\
import sys
from pathlib import Path
sys.path[:0] = {path!r}
import pytest
from pytest_wfbench.apply.errors import Faulted
from pytest_wfbench.digests import digest_bytes
from tests.apply.conftest import Ground
ground = Ground(Path({repo!r}))
for root in (".claude/skills", "mirror"):
    ground.old[root + "/work/SKILL.md"], ground.new[root + "/work/SKILL.md"] = b"old", b"new"
    assert (ground.path / root / "work/SKILL.md").read_bytes() == b"old"
with pytest.raises(Faulted) as caught:
    ground.apply()
assert str(caught.value) == "mirror/work/SKILL.md: Read-only file system; everything was put back", caught.value
assert (ground.state(), ground.strays(), caught.value.left) == ("old", [], ()), ground.state()
"""


def test_read_only_mirror(tmp_path: Path) -> None:
    """A mirror on a file system that takes nothing: all goes back, and what was never touched is not told."""
    repo, script = tmp_path / "repo", tmp_path / "script.py"
    for directory in (repo / ".claude/skills/work", repo / "mirror"):
        directory.mkdir(parents=True)
    (repo / ".claude/skills/work/SKILL.md").write_bytes(b"old")
    script.write_text(READ_ONLY.format(path=sys.path, repo=str(repo)))
    mine = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-current-user", "--mount", "--keep-caps"]
    mount = (
        f'cd "{repo}" && mount -t tmpfs -o mode=0777 none mirror && mkdir mirror/work'
        f' && printf old > mirror/work/SKILL.md && mount -o remount,ro mirror && exec "{sys.executable}" "{script}"'
    )
    ran = subprocess.run([*mine, "sh", "-c", mount], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_unreadable(ground: Ground, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses in a recovery is one line with the file's name."""
    cut(ground, "drop")
    unlink = os.unlink

    def refusing(name: Any, **named: Any) -> None:
        if "wfbench" in str(name):
            raise PermissionError(13, "Permission denied", name)
        unlink(name, **named)

    monkeypatch.setattr(os, "unlink", refusing)
    status, told = recover(ground, capsys)
    assert (status, told.count("\n"), "Permission denied" in told) == (1, 1, True)
    monkeypatch.undo()
    assert recover(ground, capsys)[0] == 0
    assert (ground.state(), ground.strays()) == ("new", [])


def test_finish_that_may_not_last(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last mark can neither be kept nor be taken back nothing is undone, and all is finished later."""
    rename, sync, marked = os.rename, os.fsync, []

    def renaming(one: Any, other: Any, **named: Any) -> None:
        if marked:
            raise OSError(5, "Input/output error")
        if str(other).endswith(".done.json"):
            marked.append(one)
        rename(one, other, **named)

    def syncing(descriptor: int) -> None:
        if marked:
            raise OSError(5, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "rename", renaming)
    monkeypatch.setattr(os, "fsync", syncing)
    with pytest.raises(Faulted, match="all files are the new ones, but") as caught:
        ground.apply()
    assert caught.value.left[0].endswith("run wfbench apply --recover")
    monkeypatch.undo()
    ground.recover()
    assert (ground.state(), ground.strays()) == ("new", [])
