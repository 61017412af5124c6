"""Removing what anybody may have filled."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_wfbench.sandbox.process import run_process

_REMOVE_TIMEOUT = 120.0


class CleanupFailed(Exception):
    """A directory could not be removed; the message names it."""


def remove_tree(path: Path) -> None:
    """Remove a directory that anybody may have filled: any depth, any mode, never through a link, in bounded time.

    Raises:
        CleanupFailed: when something is left.
    """
    if not os.path.lexists(path):
        return
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    for argv in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwX", "--"], ["rm", "-rf", "--"]):
        ended = run_process([*argv, str(path)], env=env, timeout=_REMOVE_TIMEOUT)
        if not os.path.lexists(path):
            return
    raise CleanupFailed(f"{path}: cannot be removed: {ended.stderr.decode(errors='replace').strip()[-300:]}")
