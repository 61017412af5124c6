"""Copies of whole trees, where overlays cannot be mounted: without their bytes where the file system can."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pytest_wfbench.sandbox.process import run_process

_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_TIMEOUT = 600.0


class CopyFailed(Exception):
    """A tree could not be copied; the message says why."""


def copy_tree(source: Path, target: Path) -> int:
    """Copy a tree, whoever filled it, to a path that does not exist, links as links, with dates, modes and owners.

    Returns a time of the file system's clock, in nanoseconds: whatever changes in the copy later changes at it or
    after it.

    Raises:
        CopyFailed: when it is not whole.
    """
    copy = ["cp", "--archive", "--reflink=auto", "--no-target-directory", "--", str(source), str(target)]
    ended = run_process(copy, env=_ENV, timeout=_TIMEOUT)
    if not ended.ok and b"Permission denied" in ended.stderr:
        run_process(["chmod", "-R", "u+rX", "--", str(source)], env=_ENV, timeout=_TIMEOUT)
        run_process(["rm", "-rf", "--", str(target)], env=_ENV, timeout=_TIMEOUT)
        ended = run_process(copy, env=_ENV, timeout=_TIMEOUT)
    if not ended.ok:
        cause = "no end within its timeout" if ended.timed_out else ended.stderr.decode(errors="replace").strip()
        raise CopyFailed(f"{source}: cannot be copied: {cause[-500:]}")
    marker = target.with_name(f"{target.name}.made")
    marker.touch()
    return marker.stat().st_ctime_ns


def copy_kind(source: Path, directory: Path) -> Literal["reflink", "copy"]:
    """Say by a trial whether a file can be copied into a directory without its bytes."""
    trial = directory / "trial"
    ended = run_process(["cp", "--reflink=always", "--", str(source), str(trial)], env=_ENV, timeout=_TIMEOUT)
    trial.unlink(missing_ok=True)
    return "reflink" if ended.ok else "copy"
