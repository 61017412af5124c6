"""git as the harness runs it outside a sandbox: on repositories whose configuration it does not trust.

Only commands that read objects and references are run; nothing that a repository's own configuration can turn into a
program (hooks, filters, file-system monitors, transports, lazy fetches) is reached by them, and all of it is off.
"""

from __future__ import annotations

from pathlib import Path

from pytest_wfbench.sandbox.process import run_process
from pytest_wfbench.sandbox.spec import STREAM
from pytest_wfbench.workspace.fastimport import PINNED

_OFF = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.logAllRefUpdates=false", "core.quotePath=false",
    "protocol.allow=never", "gc.auto=0", "maintenance.auto=false", "pack.threads=1",
)  # fmt: skip
_TIMEOUT = 300.0


class GitFailed(Exception):
    """git did not do what it was asked; the message is its own last line."""


def run_git(git_dir: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Return what git prints (at most ``STREAM`` bytes) for a git directory that is named outright, not discovered.

    Raises:
        GitFailed: when it does not exit 0.
    """
    options = [word for setting in _OFF for word in ("-c", setting)]
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "GIT_DIR": str(git_dir), **PINNED}
    ended = run_process(
        ["git", *options, *arguments], env=env, timeout=_TIMEOUT, stdin=stdin, stdout_limit=STREAM, keep="whole"
    )
    if not ended.ok:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        raise GitFailed(lines[-1] if lines else f"git {arguments[0]} ended with status {ended.status}")
    return ended.stdout
