"""Which commit and branch of the suite a sweep belongs to."""

from __future__ import annotations

from pathlib import Path

from pytest_wfbench.sandbox.process import run_process

SECONDS = 10.0
SHORT = 12


def head_commit(directory: Path) -> str | None:
    """Return the short commit of the repository around a directory, or none where there is none."""
    return _ask(directory, "rev-parse", f"--short={SHORT}", "HEAD")


def head_branch(directory: Path) -> str | None:
    """Return the branch that is checked out around a directory, or none where none is."""
    return _ask(directory, "symbolic-ref", "--quiet", "--short", "HEAD")


def _ask(directory: Path, *question: str) -> str | None:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    arguments = ["-c", f"safe.directory={directory}", "-c", "core.fsmonitor=false", "-C", str(directory)]
    ended = run_process(["git", *arguments, *question], env=environment, timeout=SECONDS)
    return ended.stdout.decode().strip() if ended.ok else None
