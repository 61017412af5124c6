"""Where the cells of a sweep have their upper layers: a directory that does not outlive the sweep."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_wfbench.sandbox.identity import Identity, cache_directory, private_directory
from pytest_wfbench.sandbox.removal import remove_tree

CELLS = "cells"

# Where `man proc` has the start time, counted from the field behind the command's closing parenthesis.
START_TIME = 19


@contextmanager
def scratch_directory(identity: Identity) -> Iterator[Path]:
    """Give a private directory of the sandbox's identity; what killed sweeps left behind is removed first."""
    parent = private_directory(cache_directory(identity), CELLS, identity)
    for stale in parent.iterdir():
        if not _owner_lives(stale.name) and _is_free(stale):
            remove_tree(stale)
    path = private_directory(parent, f"{_owner()}-{secrets.token_hex(4)}", identity)
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield path
    finally:
        os.close(held)
        remove_tree(path)


def _is_free(directory: Path) -> bool:
    """Whether nobody holds it: a container that shares the cache sees none of the processes of another."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def _owner() -> str:
    """Return a name for this process that no later process has: its id and when it was started."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def _owner_lives(name: str) -> bool:
    pid, _, rest = name.partition("-")
    started = rest.partition("-")[0]
    if not (pid.isdigit() and started.isdigit()):
        return True
    return _started(int(pid)) == started


def _started(pid: int) -> str | None:
    """Return when a process was started, in ticks since boot, which no change of the clock moves; none if it ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[START_TIME]
