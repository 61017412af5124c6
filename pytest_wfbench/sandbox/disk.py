"""What lies in directories that a hostile program writes to, counted while it does so.

Nothing is opened but directories, each through the descriptor of its parent and never through a link.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.sandbox.spec import Bounds, Excess

SLICE = 0.02
LAST_SECONDS = 60.0
_LEVELS = 100
_DEFERRED = 64
_STRIDE = 256
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 512


class Uncountable(Exception):
    """So many directories lie so deep that they cannot all be held open."""


@dataclass(frozen=True)
class Place:
    """A directory, and from when on what changed in it counts: nanoseconds of its file system's clock."""

    path: Path
    since: int = 0


@dataclass
class _Count:
    """What was counted so far: allocated bytes, and names."""

    size: int = 0
    names: int = 0

    def add(self, status: os.stat_result) -> None:
        links = 1 if stat.S_ISDIR(status.st_mode) else max(1, status.st_nlink)
        self.size += status.st_blocks * _BLOCK // links
        self.names += 1


class DiskMeter:
    """Counts the bytes and names in places, a slice at a time, so that a million files take no core.

    A hard link counts as a name, and as its share of the bytes. ``held`` gives the bytes of removed files that are
    still open.
    """

    pause = 0.2

    def __init__(self, places: Sequence[Place], bounds: Bounds, held: Callable[[], int] = lambda: 0) -> None:
        self._places = tuple(places)
        self._bounds = bounds
        self._held = held
        self._count = _Count()
        self._walk = _everything(self._places)
        self._slices = 0

    def look(self) -> Excess | None:
        """Count on; what was counted while files moved is counted again at once before it is held to be too much."""
        try:
            done = self._go_on(time.thread_time() + SLICE)
            found = self._exceeded()
            if found is None and not done:
                self._slices += 1
                return None
            sliced = self._slices > 0
            self._restart()
            return self.last() if found is not None and sliced else found
        except Uncountable as error:
            return Excess("disk", str(error))

    def last(self) -> Excess | None:
        """Count everything at once. What cannot be counted in ``LAST_SECONDS`` is too much."""
        self._restart()
        try:
            done = self._go_on(time.thread_time() + LAST_SECONDS)
        except Uncountable as error:
            return Excess("disk", str(error))
        found = self._exceeded()
        if found is None and not done:
            found = Excess("disk", f"files that cannot be counted in {LAST_SECONDS:.0f} s")
        self._restart()
        return found

    def _go_on(self, until: float) -> bool:
        """Count up to a time of this thread's clock; whether all was counted. Stops where it is too much already."""
        for number, status in enumerate(self._walk, 1):
            self._count.add(status)
            if number % _STRIDE == 0 and (time.thread_time() >= until or self._exceeded() is not None):
                return False
        return True

    def _restart(self) -> None:
        self._walk.close()
        self._walk = _everything(self._places)
        self._count = _Count()
        self._slices = 0

    def _exceeded(self) -> Excess | None:
        size, names, bounds = self._count.size + self._held(), self._count.names, self._bounds
        if size <= bounds.disk and names <= bounds.inodes:
            return None
        return Excess(
            "disk",
            f"at least {shown_size(size)} in {names:,} files where {shown_size(bounds.disk)} in {bounds.inodes:,} "
            "files are allowed",
        )


def shown_size(size: int) -> str:
    """Return a number of bytes as a person writes it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}".replace(".0 ", " ")
    return f"{size} B"


def _everything(places: Sequence[Place]) -> Generator[os.stat_result, None, None]:
    for place in places:
        with suppress(OSError):
            for status in walk(os.open(place.path, _DIRECTORY)):
                if status.st_ctime_ns >= place.since:
                    yield status


@dataclass(frozen=True)
class _Open:
    """The descriptor of a directory, and the mode it gets back when that is closed, if any."""

    descriptor: int
    mode: int | None = None

    def close(self) -> None:
        if self.mode is not None:
            with suppress(OSError):
                os.fchmod(self.descriptor, self.mode)
        os.close(self.descriptor)


def walk(top: int) -> Generator[os.stat_result, None, None]:
    """Yield the status of everything below a directory's descriptor, which is closed. What vanishes is passed over.

    At most a few hundred descriptors are open at a time, however deep it goes.

    Raises:
        Uncountable: when more directories than can be held open lie ``_LEVELS`` deep.
    """
    deferred = [_Open(top)]
    try:
        while deferred:
            yield from _upper_levels(deferred.pop(), deferred)
    finally:
        for directory in deferred:
            directory.close()


def _upper_levels(top: _Open, deferred: list[_Open]) -> Generator[os.stat_result, None, None]:
    """Yield what is at most ``_LEVELS`` below ``top``; the directories there are added to ``deferred``."""
    levels = [top]
    listings = [_listing(top.descriptor)]
    try:
        while levels:
            entry = next(listings[-1], None)
            if entry is None:
                listings.pop()
                levels.pop().close()
                continue
            status = _status(entry)
            if status is None:
                continue
            yield status
            child = _entered(entry.name, levels[-1].descriptor, status) if stat.S_ISDIR(status.st_mode) else None
            if child is None:
                continue
            if len(levels) < _LEVELS:
                levels.append(child)
                listings.append(_listing(child.descriptor))
            else:
                deferred.append(child)
                if len(deferred) > _DEFERRED:
                    raise Uncountable(f"more than {_DEFERRED} directories that are {_LEVELS} levels deep")
    finally:
        for listing in listings:
            listing.close()
        for directory in levels:
            directory.close()


def _listing(directory: int) -> Generator[os.DirEntry[str], None, None]:
    try:
        with os.scandir(directory) as found:
            yield from found
    except OSError:
        return


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _entered(name: str, parent: int, status: os.stat_result) -> _Open | None:
    """Open a directory; one of our own uid that is closed to us is not until it was looked at."""
    mode = stat.S_IMODE(status.st_mode)
    needed = stat.S_IRUSR | stat.S_IXUSR
    with suppress(OSError):
        if status.st_uid != os.geteuid() or mode & needed == needed or os.geteuid() == 0:
            return _Open(os.open(name, _DIRECTORY, dir_fd=parent))
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            place = f"/proc/self/fd/{handle}"
            os.chmod(place, mode | needed)  # noqa: PTH101
            return _Open(os.open(place, _DIRECTORY & ~os.O_NOFOLLOW), mode)
        finally:
            os.close(handle)
    return None
