"""What the processes of one sandbox use, read from ``/proc`` without asking any of them."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pytest_wfbench.sandbox.disk import shown_size
from pytest_wfbench.sandbox.spec import Bounds, Excess

_PAGE = resource.getpagesize()
# What an empty file in memory costs the kernel, roughly.
_INODE = 1024
_DESCRIPTORS = 20_000
_FILL_RATE = 4 << 30
_FAR = 1.0


@dataclass(frozen=True)
class Held:
    """Bytes of files without a name that are open: in memory (``memfd``), and on a disk."""

    memory: int = 0
    disk: int = 0


class UsageMeter:
    """Counts the processes and threads of a sandbox, and the memory of these and of its private directories.

    ``first`` gives the host's process id of the sandbox's first process once the command was started. ``private`` are
    the targets of directories in memory. With ``judging`` false only ``held_on_disk`` is found out.
    """

    def __init__(
        self, first: Callable[[], int | None], bounds: Bounds, private: Sequence[str], judging: bool = True
    ) -> None:
        self.pause = 0.2
        self.held_on_disk = 0
        self._first = first
        self._bounds = bounds
        self._private = tuple(private)
        self._judging = judging
        self._crowded = False

    def look(self) -> Excess | None:
        """Say whether there are too many processes, twice in a row, or they use too much memory."""
        first = self._first()
        members = list(members_of(first)) if first is not None else []
        if first is None or not members:
            return None
        held = held_open(members, _devices(first, self._private))
        self.held_on_disk = held.disk
        if not self._judging:
            return None
        return self._crowd(members) or self._memory(members, held, first)

    def last(self) -> Excess | None:
        """Say nothing: what has ended uses nothing."""
        self.held_on_disk = 0
        return None

    def _crowd(self, members: Sequence[int]) -> Excess | None:
        """The kernel refuses more than the bound and keeps no record of it: who stays at the bound was refused."""
        bound, tasks = self._bounds.processes, sum(map(_tasks, members))
        crowded, self._crowded = self._crowded, tasks >= bound - bound // 32
        if not (crowded and self._crowded):
            return None
        return Excess("processes", f"{tasks:,} processes and threads where {bound:,} are allowed")

    def _memory(self, members: Sequence[int], held: Held, first: int) -> Excess | None:
        """Resident pages are cheap to read, and shared ones count several times: if they are too many, look closer."""
        bound = self._bounds.memory
        files = held.memory + in_directories(first, self._private)
        rough = files + sum(map(_resident, members))
        self.pause = min(_FAR, max(0.05, (bound - rough) / _FILL_RATE))
        if rough <= bound:
            return None
        exact = proportional(members, files)
        self.pause = min(_FAR, max(0.05, (bound - exact) / _FILL_RATE))
        if exact <= bound:
            return None
        return Excess("memory", f"{shown_size(exact)} of memory where {shown_size(bound)} are allowed")


def members_of(first: int) -> Iterator[int]:
    """Yield the processes of the pid namespace that a process is in."""
    space = _space(first)
    if space is None or space == _space(os.getpid()):
        return
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and _space(int(name)) == space:
            yield int(name)


def _space(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return None


def _tasks(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return max(1, int(fields[17])) if len(fields) > 17 else 0


def _resident(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def proportional(members: Sequence[int], files: int) -> int:
    """Return the bytes that processes and files in memory take up together, each shared page once.

    Pages of files on a disk are left out: the kernel drops them when it must. Shared pages may be pages of ``files``:
    the greater of the two counts.
    """
    anonymous = shared = 0
    for pid in members:
        lines = (line.split() for line in _read(pid, "smaps_rollup").splitlines()[1:])
        sizes = {words[0]: int(words[1]) << 10 for words in lines if len(words) > 1}
        anonymous += sizes.get(b"Pss_Anon:", 0)
        shared += sizes.get(b"Pss_Shmem:", 0)
    return anonymous + max(shared, files)


def in_directories(first: int, targets: Sequence[str]) -> int:
    """Return the bytes in private directories of a sandbox, each file system counted once."""
    used: dict[int, int] = {}
    for target in targets:
        with suppress(OSError):
            place = f"/proc/{first}/root{target}"
            found = os.statvfs(place)
            files = max(0, found.f_files - found.f_ffree)
            used[os.stat(place).st_dev] = (found.f_blocks - found.f_bfree) * found.f_frsize + files * _INODE  # noqa: PTH116
    return sum(used.values())


def _devices(first: int, targets: Sequence[str]) -> frozenset[int]:
    found: set[int] = set()
    for target in targets:
        with suppress(OSError):
            found.add(os.stat(f"/proc/{first}/root{target}").st_dev)  # noqa: PTH116
    return frozenset(found)


def held_open(members: Sequence[int], private: frozenset[int] = frozenset()) -> Held:
    """Return what files without a name hold, as far as ``_DESCRIPTORS`` descriptors tell; each file counts once.

    Those on a ``private`` device count in that already.
    """
    memory: dict[tuple[int, int], int] = {}
    disk: dict[tuple[int, int], int] = {}
    budget = _DESCRIPTORS
    for pid in members:
        for place in _descriptors(pid):
            budget -= 1
            if budget < 0:
                break
            with suppress(OSError):
                name = os.readlink(place)  # noqa: PTH115
                if name.endswith(" (deleted)"):
                    found = os.stat(place)  # noqa: PTH116
                    if stat.S_ISREG(found.st_mode) and found.st_dev not in private:
                        kept = memory if name.startswith("/memfd:") else disk
                        kept[found.st_dev, found.st_ino] = found.st_blocks * 512
    return Held(sum(memory.values()), sum(disk.values()))


def _descriptors(pid: int) -> list[str]:
    try:
        return [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]  # noqa: PTH208
    except OSError:
        return []


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as stream:
            return stream.read()
    except OSError:
        return b""
