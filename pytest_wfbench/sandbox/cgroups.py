"""A control group for each command, where such are delegated to us: memory and processes as the kernel counts them.

Only control groups of version 2, below a directory that this user may write to and that hands the controllers on. A
group dies with its command; what a killed harness left behind is empty, and the next one removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.sandbox.disk import shown_size
from pytest_wfbench.sandbox.process import end_process, start_process
from pytest_wfbench.sandbox.spec import Bounds, Excess

CONTROLLERS = frozenset({"memory", "pids"})
_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "wfbench"
_NAME = re.compile(rf"{_PREFIX}-([0-9]+)-[0-9a-f]+\Z")
_VANISH = 2.0
_ENV = {"PATH": "/usr/bin:/bin"}


@dataclass(frozen=True)
class Delegation:
    """A directory in which we may make control groups that have the controllers."""

    directory: Path


@dataclass(frozen=True)
class Undelegated:
    """Why there is no such directory, and what to do about it."""

    reason: str
    remedy: str


@dataclass(frozen=True)
class Group:
    """The control group of one command, and a meter of it."""

    directory: Path
    bounds: Bounds

    @property
    def pause(self) -> float:
        """Two small files are read."""
        return 0.2

    def admit(self, pid: int) -> None:
        """Put a process in, before it starts any other. Raises OSError."""
        _write(self.directory / "cgroup.procs", pid)

    def look(self) -> Excess | None:
        """Say what was refused so far: the group's own limits alone count, not those of a group around it."""
        if _events(self.directory / "pids.events").get("max", 0):
            return Excess(
                "processes", f"more than the {self.bounds.processes:,} processes and threads that are allowed"
            )
        if _events(self.directory / "memory.events").get("oom", 0):
            return Excess("memory", f"more than the {shown_size(self.bounds.memory)} of memory that are allowed")
        return None

    def last(self) -> Excess | None:
        """Say what was refused."""
        return self.look()


def find_delegation(root: Path = _ROOT, told: Path = Path("/proc/self/cgroup")) -> Delegation | Undelegated:
    """Return where control groups can be made: the nearest group around this process that hands the controllers on."""
    try:
        own = next(line[3:] for line in told.read_text().splitlines() if line.startswith("0::"))
        offered = _words(root / "cgroup.controllers")
    except (OSError, StopIteration):
        return Undelegated("no control groups of version 2 here", "use a host with control groups of version 2 only")
    if missing := CONTROLLERS - offered:
        reason = f"no controller {' and '.join(sorted(missing))} of control groups of version 2"
        return Undelegated(reason, "use a host with control groups of version 2 only")
    place = root / own.strip("/")
    around = [directory for directory in (place, *place.parents) if directory.is_relative_to(root)]
    if not any(map(_hands_on, around)):
        _let_hand_on(root, place)
    for directory in around:
        if _hands_on(directory) and _tried(directory):
            _remove_stale(directory)
            return Delegation(directory)
    return Undelegated(
        "no control group that we may write to hands memory and pids on",
        "start pytest by `systemd-run --user --scope -p Delegate=yes`, or let the container's /sys/fs/cgroup do so",
    )


@contextmanager
def new_group(delegation: Delegation | None, bounds: Bounds) -> Iterator[Group | None]:
    """Give a new control group with the bounds, which is emptied and removed; none where it cannot be made."""
    group = None if delegation is None else _made(delegation.directory, bounds)
    try:
        yield group
    finally:
        if group is not None:
            end_group(group.directory)


def end_group(directory: Path) -> None:
    """Kill what is in a control group, wait for its end, and remove it."""
    with suppress(OSError):
        _write(directory / "cgroup.kill", 1)
    until = time.monotonic() + _VANISH
    while directory.exists() and time.monotonic() < until:
        try:
            directory.rmdir()
        except OSError:
            time.sleep(0.005)


def _made(parent: Path, bounds: Bounds) -> Group | None:
    directory = parent / f"{_PREFIX}-{os.getpid()}-{secrets.token_hex(6)}"
    try:
        directory.mkdir()
        _write(directory / "memory.max", bounds.memory)
        _write(directory / "memory.oom.group", 1)
        _write(directory / "pids.max", bounds.processes)
    except OSError:
        with suppress(OSError):
            directory.rmdir()
        return None
    # A kernel without swap has no such file.
    with suppress(OSError):
        _write(directory / "memory.swap.max", 0)
    return Group(directory, bounds)


def _tried(parent: Path) -> bool:
    """Whether a process can be put into a group made there."""
    group = _made(parent, Bounds())
    if group is None:
        return False
    trial = start_process(["sleep", "60"], env=_ENV)
    try:
        group.admit(trial.pid)
    except OSError:
        return False
    else:
        return True
    finally:
        end_process(trial, grace=0)
        end_group(group.directory)


def _hands_on(directory: Path) -> bool:
    try:
        given = _words(directory / "cgroup.subtree_control")
    except OSError:
        return False
    return given >= CONTROLLERS and os.access(directory, os.W_OK) and os.access(directory / "cgroup.procs", os.W_OK)


def _let_hand_on(root: Path, own: Path) -> None:
    """Let the root of all groups hand the controllers on, if it is ours and we are in it.

    It alone has no type, and may do so while processes are in it. A container's processes are not ours to move.
    """
    if root != own or (root / "cgroup.type").exists() or not os.access(root / "cgroup.subtree_control", os.W_OK):
        return
    with suppress(OSError):
        _write(root / "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(CONTROLLERS)))


def _remove_stale(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}-*"):
        match = _NAME.match(path.name)
        if match and not Path(f"/proc/{match[1]}").exists():
            with suppress(OSError):
                path.rmdir()


def _events(path: Path) -> dict[str, int]:
    try:
        lines = (line.split() for line in path.read_text().splitlines())
        return {words[0]: int(words[1]) for words in lines if len(words) == 2}
    except OSError:
        return {}


def _words(path: Path) -> frozenset[str]:
    return frozenset(path.read_text().split())


def _write(path: Path, value: object) -> None:
    # No file is ever created: in cgroupfs those that can be written to are there.
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)
