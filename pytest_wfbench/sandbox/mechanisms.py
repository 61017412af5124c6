"""Which mechanism keeps each limit on this machine, for people to read."""

from __future__ import annotations

from pytest_wfbench.sandbox.cgroups import Delegation, find_delegation


def describe_limits() -> tuple[str, str | None]:
    """Return what enforces memory, processes and disk here, and what would make it tighter, if anything."""
    found = find_delegation()
    disk = "disk: sized file systems for /tmp and home, the workspace is counted as it grows"
    if isinstance(found, Delegation):
        return f"memory and processes: a control group for each command, in {found.directory}; {disk}", None
    watched = "memory: proportional set size is watched; processes: RLIMIT_NPROC inside the sandbox"
    return f"{watched} ({found.reason}); {disk}", f"for limits that the kernel keeps, {found.remedy}"
