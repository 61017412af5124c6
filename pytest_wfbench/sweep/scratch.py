"""Where the cells of a sweep have their upper layers: a directory that does not outlive the sweep."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from pytest_wfbench.sandbox.identity import Identity, cache_directory, private_directory
from pytest_wfbench.workspace.shelf import remove_tree

CELLS = "cells"


@contextmanager
def scratch_directory(identity: Identity) -> Iterator[Path]:
    """Give a private directory of the sandbox's identity; what killed sweeps left behind is removed first."""
    parent = private_directory(cache_directory(identity), CELLS, identity)
    for stale in parent.iterdir():
        if not _owner_lives(stale.name):
            remove_tree(stale)
    path = private_directory(parent, f"{_owner()}-{secrets.token_hex(4)}", identity)
    try:
        yield path
    finally:
        remove_tree(path)


def _owner() -> str:
    """Return a name for this process that no later process has: its id and when it was started."""
    return f"{os.getpid()}-{int(psutil.Process().create_time() * 100)}"


def _owner_lives(name: str) -> bool:
    pid, _, rest = name.partition("-")
    created = rest.partition("-")[0]
    if not (pid.isdigit() and created.isdigit()):
        return True
    try:
        return abs(int(psutil.Process(int(pid)).create_time() * 100) - int(created)) <= 1
    except psutil.Error:
        return False
