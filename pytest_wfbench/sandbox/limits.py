"""What the kernel enforces on the processes of one sandbox: resource limits, set by the sandbox's init inside it."""

from __future__ import annotations

import resource

from pytest_wfbench.sandbox.spec import Bounds

ADDRESS_SPACE_FLOOR = 8 << 30
OPEN_FILES = 4096
TEMP_SIZE = 2 << 30
HOME_SIZE = 1 << 30
SMALL_SIZE = 64 << 20


def resource_limits(bounds: Bounds) -> tuple[tuple[int, int], ...]:
    """Return (resource, value) pairs, soft and hard alike.

    The number of processes is counted per user namespace, so it must be set inside: outside, all sandboxes of the uid
    would share it. The address space is a backstop only, since agents reserve much more than they use.
    """
    return (
        (resource.RLIMIT_NPROC, bounds.processes),
        (resource.RLIMIT_FSIZE, bounds.file_size),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, max(ADDRESS_SPACE_FLOOR, bounds.memory)),
    )


def temp_size(bounds: Bounds) -> int:
    """Return the bytes that a private directory in memory may hold."""
    return min(TEMP_SIZE, bounds.disk)


def home_size(bounds: Bounds) -> int:
    """Return the bytes that the private home may hold."""
    return min(HOME_SIZE, bounds.disk)
