"""Which commit of the suite a sweep belongs to."""

from __future__ import annotations

from pathlib import Path

from pytest_wfbench.sandbox.process import run_process

SECONDS = 10.0
SHORT = 12


def head_commit(directory: Path) -> str | None:
    """Return the short commit of the repository around a directory, or none where there is none."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    arguments = ["-c", f"safe.directory={directory}", "-c", "core.fsmonitor=false", "-C", str(directory)]
    ended = run_process(["git", *arguments, "rev-parse", f"--short={SHORT}", "HEAD"], env=environment, timeout=SECONDS)
    return ended.stdout.decode().strip() if ended.ok else None
