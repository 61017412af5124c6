"""What the processes of one sandbox may use, and by what it is enforced: resource limits, a control group, meters."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterable
from dataclasses import replace

from pytest_wfbench.sandbox.cgroups import Group
from pytest_wfbench.sandbox.channels import Channels, Story
from pytest_wfbench.sandbox.disk import DiskMeter, Place, shown_size
from pytest_wfbench.sandbox.spec import HOME, Bind, Bounds, Excess, Finished, Mount, Overlay, Tmpfs
from pytest_wfbench.sandbox.usage import UsageMeter
from pytest_wfbench.sandbox.watch import Meter, Watch

ADDRESS_SPACE_SLACK = 8 << 30
OPEN_FILES = 4096
TEMP_SIZE = 2 << 30
HOME_SIZE = 1 << 30
SMALL_SIZE = 64 << 20
# Directories in memory that every sandbox has and a command can fill; below the root lie throw-away upper layers.
PRIVATE = ("/tmp", HOME, "/run", "/dev/shm")
_ROOT = "/"
_TOO_LARGE = 128 + signal.SIGXFSZ
# A control group is to refuse a process before this limit does: it keeps a record of it.
_BEHIND = 64


def resource_limits(bounds: Bounds, grouped: bool = False) -> tuple[tuple[int, int], ...]:
    """Return (resource, value) pairs, soft and hard alike.

    The number of processes is counted per user namespace, so it must be set inside: outside, all sandboxes of the uid
    would share it. The address space is a backstop only, since agents reserve much more than they use. ``grouped``
    says that a control group counts processes, too.
    """
    return (
        (resource.RLIMIT_NPROC, bounds.processes + (_BEHIND if grouped else 0)),
        (resource.RLIMIT_FSIZE, bounds.file_size),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, bounds.memory + ADDRESS_SPACE_SLACK),
    )


def temp_size(bounds: Bounds) -> int:
    """Return the bytes that a private directory in memory may hold."""
    return min(TEMP_SIZE, bounds.disk)


def home_size(bounds: Bounds) -> int:
    """Return the bytes that the private home may hold."""
    return min(HOME_SIZE, bounds.disk)


def watch_sandbox(mounts: Iterable[Mount], bounds: Bounds, channels: Channels, group: Group | None) -> Watch:
    """Return what looks at a command of bubblewrap's; a control group spares it the counting of processes."""
    listed = tuple(mounts)
    private = (_ROOT, *PRIVATE, *(mount.target for mount in listed if isinstance(mount, Tmpfs) and not mount.sealed))
    usage = UsageMeter(channels.running, bounds, tuple(dict.fromkeys(private)), judging=group is None)
    return Watch(_meters(listed, bounds, usage, group))


def watch_disk(mounts: Iterable[Mount], bounds: Bounds) -> Watch:
    """Return what looks at the directories alone that a command can write to."""
    return Watch([DiskMeter(places, bounds)] if (places := written(mounts)) else [])


def _meters(mounts: tuple[Mount, ...], bounds: Bounds, usage: UsageMeter, group: Group | None) -> list[Meter]:
    meters: list[Meter] = [usage] if group is None else [group, usage]
    if places := written(mounts):
        meters.append(DiskMeter(places, bounds, lambda: usage.held_on_disk))
    return meters


def written(mounts: Iterable[Mount]) -> tuple[Place, ...]:
    """Return the directories of the host that a command can write to: each file on one disk is in one of them."""
    found = []
    for mount in mounts:
        if isinstance(mount, Overlay) and mount.mode == "rw" and mount.upper is not None:
            found.append(Place(mount.upper))
        elif isinstance(mount, Bind) and mount.writable and mount.source.is_dir():
            found.append(Place(mount.source, mount.since))
    return tuple(place for place in found if not any(other.path in place.path.parents for other in found))


def settle(ended: Finished, bounds: Bounds, watch: Watch, story: Story) -> Finished:
    """Return how a command ended, with the limit it ran into although nothing ended it for that.

    Nobody inside can kill the sandbox's first process: where that died before the command, no command is to blame.
    """
    if not ended.started or ended.limit is not None or ended.cancelled:
        return ended
    found = watch.last() or _of_status(ended, bounds, story)
    if found is None and story.end is None and not ended.timed_out:
        told = f"the sandbox was ended from outside, with status {ended.status}: ".encode()
        return replace(ended, status=None, started=False, stderr=told + ended.stderr)
    return ended if found is None else replace(ended, limit=found.limit, excess=found.told)


def _of_status(ended: Finished, bounds: Bounds, story: Story) -> Excess | None:
    """Ask a failed command for the limits that leave no other trace."""
    if ended.status in (0, None):
        return None
    if ended.status == _TOO_LARGE:
        return Excess("disk", f"a file larger than the {shown_size(bounds.file_size)} that are allowed")
    return Excess("disk", f"it failed with {story.full} full") if story.full else None
