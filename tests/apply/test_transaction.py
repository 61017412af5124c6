"""All changes or none, whatever comes in between, and no edit of anyone else lost."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_wfbench.apply.errors import Faulted, Refused, Stopped
from pytest_wfbench.apply.places import Place
from pytest_wfbench.apply.swap import Swap, link_and_rename, swap

from .conftest import Ground

SWAPS = pytest.mark.parametrize("swapping", [swap, link_and_rename], ids=["exchange", "link"])
FIRST, SECOND = ".claude/skills/work/SKILL.md", ".claude/skills/work/more.md"
MINE = b"somebody's own edit\n"


def at(step: str, act: Callable[[], None]) -> Callable[[str], None]:
    """Act once, right before a step."""
    left = [act]

    def watch(name: str) -> None:
        if name == step and left:
            left.pop()()

    return watch


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def steps(ground: Ground) -> list[str]:
    names = ["journal", "make .claude/skills/work/new", "make mirror/skills/work/new"]
    for word in ("stage", "exchange"):
        names += [f"{word} {change.path}" for change in ground.changes]
    return [*names, "verify", "finish"]


class TestWhole:
    @SWAPS
    def test_all(self, ground: Ground, swapping: Swap) -> None:
        """Every file is the new one, keeps its mode, and nothing else is left."""
        (ground.path / FIRST).chmod(0o600)
        ground.apply(swapping=swapping)
        assert (ground.state(), ground.strays()) == ("new", [])
        assert stat.S_IMODE((ground.path / FIRST).stat().st_mode) == 0o600

    def test_every_step_is_watched(self, ground: Ground) -> None:
        """The steps that the other tests come in between are all there are."""
        seen: list[str] = []
        ground.apply(seen.append)
        assert seen == steps(ground)

    @SWAPS
    @pytest.mark.parametrize("error", [Stopped("SIGTERM"), OSError(28, "No space left on device", "x")], ids=str)
    def test_fault_at_every_step(self, ground: Ground, swapping: Swap, error: BaseException) -> None:
        """A fault or a signal before any step leaves everything as it was."""
        for step in steps(ground):
            with pytest.raises((Faulted, Stopped, OSError)):
                ground.apply(at(step, raising(error)), swapping)
            assert (step, ground.state(), ground.strays()) == (step, "old", [])


class TestRefused:
    """What is found before anything is touched."""

    def refused(self, ground: Ground) -> str:
        before = ground.files()
        with pytest.raises(Refused) as caught:
            ground.apply()
        assert ground.files() == before
        return str(caught.value)

    def test_changed(self, ground: Ground) -> None:
        """A file that is not what the evidence is bound to."""
        (ground.path / SECOND).write_bytes(MINE)
        assert SECOND in self.refused(ground)
        (ground.path / SECOND).unlink()
        assert f"{SECOND} is not there" in self.refused(ground)

    def test_mirror(self, ground: Ground) -> None:
        """A mirror that is no mirror any more."""
        (ground.path / "mirror/skills/plan/SKILL.md").write_bytes(MINE)
        assert "mirror/skills/plan/SKILL.md is sha256:" in self.refused(ground)

    def test_there_already(self, ground: Ground) -> None:
        """A file that the candidate adds, but that is there."""
        added = ground.path / ".claude/skills/work/new/added.md"
        added.parent.mkdir()
        added.write_bytes(MINE)
        assert "is there, but the candidate adds it" in self.refused(ground)

    def test_links(self, ground: Ground, tmp_path: Path) -> None:
        """A link in the path, and a link in the file's place, even to the right bytes."""
        real = ground.path / FIRST
        real.rename(tmp_path / "real.md")
        real.symlink_to(tmp_path / "real.md")
        assert "is a link" in self.refused(ground)
        (ground.path / "mirror/skills").rename(tmp_path / "elsewhere")
        (ground.path / "mirror/skills").symlink_to(tmp_path / "elsewhere")
        real.unlink()
        (tmp_path / "real.md").rename(real)
        assert "'skills' is a link" in self.refused(ground)

    def test_no_file(self, ground: Ground) -> None:
        """A pipe in the file's place is not waited for."""
        (ground.path / FIRST).unlink()
        os.mkfifo(ground.path / FIRST)
        assert "no regular file" in self.refused(ground)

    def test_outside(self, ground: Ground) -> None:
        """A path that leaves the repository."""
        ground.new["../outside.md"] = b"x"
        assert "leaves the repository" in self.refused(ground)

    def test_two_at_once(self, ground: Ground) -> None:
        """Of two applies at the same time one is refused, and the other is not disturbed."""
        said: list[str] = []

        def second() -> None:
            with pytest.raises(Refused) as caught:
                ground.apply()
            said.append(str(caught.value))

        ground.apply(at("verify", second))
        assert "another apply" in said[0]
        assert ground.state() == "new"


class TestEditors:
    """Somebody edits meanwhile: what is theirs stays, the rest goes back."""

    @SWAPS
    @pytest.mark.parametrize("how", ["renames", "writes"])
    def test_at_every_step(self, ground: Ground, swapping: Swap, how: str) -> None:
        """An edit before any step is there afterwards, whichever way editors save."""

        def edit() -> None:
            if how == "writes":
                (ground.path / SECOND).write_bytes(MINE)
            else:
                (ground.path / "draft").write_bytes(MINE)
                (ground.path / "draft").rename(ground.path / SECOND)

        for step in steps(ground)[1:]:
            # Between the last look and the end an edit is one of the new file.
            with suppress(Faulted):
                ground.apply(at(step, edit), swapping)
            assert (step, (ground.path / SECOND).read_bytes()) == (step, MINE)
            ground.recover()
            assert (step, (ground.path / SECOND).read_bytes()) == (step, MINE)
            assert (step, ground.strays()) == (step, [])
            assert ground.state(but=[SECOND]) == ("new" if step == "finish" else "old")
            for path in ground.new:
                (ground.path / path).unlink(missing_ok=True)
            for root in (".claude", "mirror"):
                with suppress(OSError):
                    (ground.path / root / "skills/work/new").rmdir()
            for path, data in ground.old.items():
                (ground.path / path).write_bytes(data)

    @pytest.mark.parametrize("how", ["renames", "writes", "removes"])
    def test_added_file(self, ground: Ground, how: str) -> None:
        """An edit of a file that was just added is somebody's too."""
        added = ".claude/skills/work/new/added.md"

        def edit() -> None:
            if how == "writes":
                (ground.path / added).write_bytes(MINE)
            elif how == "removes":
                (ground.path / added).unlink()
            else:
                (ground.path / "draft").write_bytes(MINE)
                (ground.path / "draft").rename(ground.path / added)

        with pytest.raises(Faulted, match="edited meanwhile"):
            ground.apply(at("verify", edit))
        ground.recover()
        assert ground.files().get(added) == (None if how == "removes" else MINE)
        assert (ground.state(but=[added]), ground.strays()) == ("old", [])

    def test_while_put_back(self, ground: Ground) -> None:
        """An edit in the instant in which a file is put back stays where it was made, and is on record."""
        seen: list[str] = []

        def racing(one: Place, other: Place) -> None:
            seen.append(one.shown)
            if seen.count(SECOND) == 2:
                (ground.path / SECOND).write_bytes(MINE)
            swap(one, other)

        with pytest.raises(Faulted) as caught:
            ground.apply(at("verify", raising(Stopped("SIGTERM"))), racing)
        assert SECOND in caught.value.left[0]
        assert (ground.path / SECOND).read_bytes() == MINE
        ground.recover()
        assert (ground.path / SECOND).read_bytes() == MINE
        assert (ground.state(but=[SECOND]), ground.strays()) == ("old", [])

    def test_open_handle(self, ground: Ground) -> None:
        """A handle that was open for writing all along: all goes back, and what it writes is found in its file."""
        with (ground.path / SECOND).open("r+b") as handle:
            with pytest.raises(Faulted, match="open for writing"):
                ground.apply()
            assert ground.state() == "old"
            handle.write(MINE)
        assert (ground.path / SECOND).read_bytes().startswith(MINE)

    def test_written_through_a_handle(self, ground: Ground) -> None:
        """What was written through such a handle after the exchange is found in its file."""
        handle = (ground.path / SECOND).open("r+b")

        def write() -> None:
            handle.write(MINE)
            handle.close()

        with pytest.raises(Faulted, match="edited meanwhile"):
            ground.apply(at("verify", write))
        assert (ground.path / SECOND).read_bytes().startswith(MINE)
        assert ground.state(but=[SECOND]) == "old"

    def test_removed(self, ground: Ground) -> None:
        """A file that somebody removed stays removed; what could not be undone is on record until recovered."""
        with pytest.raises(Faulted) as caught:
            ground.apply(at("verify", (ground.path / SECOND).unlink))
        assert SECOND in caught.value.left[0]
        [record] = ground.path.glob(".wfbench-recovery-*.json")
        assert SECOND in record.read_text()
        ground.recover()
        assert not (ground.path / SECOND).exists()
        assert (ground.state(but=[SECOND]), ground.strays()) == ("old", [])

    def test_link_swapped_in(self, ground: Ground, tmp_path: Path) -> None:
        """A directory that turns into a link meanwhile: nothing is written beyond it, and nothing is lost."""
        outside, skills = tmp_path / "outside", ground.path / ".claude/skills/work"
        outside.mkdir()
        (outside / "SKILL.md").write_bytes(ground.old[FIRST])

        def replace() -> None:
            skills.rename(ground.path / "moved")
            skills.symlink_to(outside)

        with pytest.raises(Faulted, match="is a link"):
            ground.apply(at(f"exchange {SECOND}", replace))
        assert [path.name for path in outside.iterdir()] == ["SKILL.md"]
        assert (outside / "SKILL.md").read_bytes() == ground.old[FIRST]
        assert (ground.path / "moved/SKILL.md").read_bytes() == ground.old[FIRST]
