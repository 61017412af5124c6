"""Counting what lies in directories that a hostile program fills."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_wfbench.sandbox import disk
from pytest_wfbench.sandbox.disk import DiskMeter, Place, Uncountable, shown_size, walk
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.spec import Bounds

MIB = 1 << 20


def names(top: Path) -> int:
    return sum(1 for _ in walk(os.open(top, os.O_RDONLY)))


def descend(top: Path, levels: int, name: str = "d") -> int:
    """Make a chain of directories deeper than a path can name, and return a descriptor of the last."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    return at


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A directory that is removed afterwards: pytest cannot remove one that is thousands of levels deep."""
    (tmp_path / "deep").mkdir()
    yield tmp_path / "deep"
    remove_tree(tmp_path / "deep")


class TestWalk:
    def test_all_kinds(self, tmp_path: Path) -> None:
        """Whatever has a name counts, and no link is followed."""
        (tmp_path / "d/e").mkdir(parents=True)
        (tmp_path / "d/file").touch()
        (tmp_path / "d/out").symlink_to("/usr")
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / os.fsdecode(b"\xff\n")).mkdir()
        assert names(tmp_path) == 6

    def test_thousands_of_levels(self, deep: Path) -> None:
        """A deep tree is counted to its bottom with few descriptors, and all of them are closed."""
        os.close(descend(deep, 3000))
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        most = 0
        for number, _ in enumerate(walk(os.open(deep, os.O_RDONLY)), 1):
            if number % 50 == 0:
                most = max(most, len(os.listdir("/proc/self/fd")))  # noqa: PTH208
        assert (number, len(os.listdir("/proc/self/fd"))) == (3000, before)  # noqa: PTH208
        assert most - before < 300

    def test_broad_and_deep(self, tmp_path: Path) -> None:
        """More deep directories than can be held open are not passed over in silence."""
        at = descend(tmp_path, 99)
        for number in range(80):
            os.mkdir(str(number), dir_fd=at)
        os.close(at)
        with pytest.raises(Uncountable):
            names(tmp_path)
        found = DiskMeter([Place(tmp_path)], Bounds()).last()
        assert found is not None
        assert found.limit == "disk"

    def test_closed_directory(self, tmp_path: Path) -> None:
        """A directory of one's own that is closed is counted all the same, and closed afterwards."""
        (tmp_path / "d").mkdir()
        (tmp_path / "d/file").touch()
        (tmp_path / "d").chmod(0)
        assert names(tmp_path) == 2
        assert (tmp_path / "d").stat().st_mode & 0o777 == 0
        (tmp_path / "d").chmod(0o700)

    def test_what_vanishes(self, tmp_path: Path) -> None:
        """A file or directory that is gone when it is looked at is passed over."""
        for number in range(40):
            (tmp_path / str(number)).mkdir()
        found = walk(os.open(tmp_path, os.O_RDONLY))
        next(found)
        for path in tmp_path.iterdir():
            path.rmdir()
        assert sum(1 for _ in found) < 40


class TestMeter:
    def test_stops_early(self, tmp_path: Path) -> None:
        """A million files cost no more than the bound: the count ends where it is too much."""
        for number in range(3000):
            (tmp_path / str(number)).touch()
        found = DiskMeter([Place(tmp_path)], Bounds(inodes=100)).last()
        assert found is not None
        assert int(found.told.split(" in ")[1].split()[0].replace(",", "")) <= 512

    def test_a_slice_at_a_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A look takes a slice of time, and a later one goes on where it stopped."""
        monkeypatch.setattr(disk, "SLICE", 0.0)
        for number in range(2000):
            (tmp_path / str(number)).touch()
        meter = DiskMeter([Place(tmp_path)], Bounds(inodes=1900))
        looks = [meter.look() for _ in range(8)]
        assert looks[0] is None
        assert any(looks)

    def test_many_files_take_no_core(self, tmp_path: Path) -> None:
        """One look at many files ends in its slice."""
        for number in range(10_000):
            (tmp_path / str(number)).touch()
        meter = DiskMeter([Place(tmp_path)], Bounds())
        began = time.thread_time()
        assert meter.look() is None
        assert time.thread_time() - began < 5 * disk.SLICE

    @pytest.mark.parametrize(("first", "second"), [("p", "q"), ("q", "p")])
    def test_moved_while_counted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
    ) -> None:
        """What was counted twice because it moved is counted again before it is too much."""
        monkeypatch.setattr(disk, "SLICE", 0.0)
        for directory in ("p", "q"):
            (tmp_path / directory).mkdir()
            for number in range(300):
                (tmp_path / directory / f"{directory}{number}").touch()
        meter = DiskMeter([Place(tmp_path)], Bounds(inodes=700))
        assert meter.look() is None
        for path in (tmp_path / first).iterdir():
            path.rename(tmp_path / second / path.name)
        assert [meter.look() for _ in range(6)] == [None] * 6

    def test_nothing_to_look_at(self, tmp_path: Path) -> None:
        """A place that is gone holds nothing."""
        assert DiskMeter([Place(tmp_path / "gone")], Bounds()).last() is None

    def test_held(self, tmp_path: Path) -> None:
        """Removed files that are open are added."""
        meter = DiskMeter([Place(tmp_path)], Bounds(disk=MIB), held=lambda: 2 * MIB)
        (tmp_path / "x").touch()
        found = meter.look()
        assert found is not None
        assert found.told.startswith("at least 2 MiB in 1 files where 1 MiB")


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1 << 10, "1 KiB"), (3 << 19, "1.5 MiB"), (8 << 30, "8 GiB")]
)
def test_shown_size(size: int, text: str) -> None:
    """Sizes read as in a case file."""
    assert shown_size(size) == text


def test_descriptors_are_few() -> None:
    """A count fits into the usual limit of open files."""
    assert min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0]) / 2 > 2 * disk._LEVELS + disk._DEFERRED
