"""The outage stop: consecutive unusable cells, counted over every process of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from pytest_wfbench.files import write_atomic

LOCK, COUNT, STOP = "outage.lock", "outage.count", "stop"


@dataclass(frozen=True)
class OutageGuard:
    """Counts in ``directory``, which all workers of a sweep share. ``limit`` 0 switches it off.

    Each process counts a cell when it ends, before it may start another: so once the limit is reached only cells that
    were already running elsewhere finish.
    """

    directory: Path
    limit: int

    def note(self, outcome: str, cause: str) -> None:
        """Count a finished cell: an unusable one adds to the row of them, a graded one ends it."""
        if not self.limit or outcome == "skipped":
            return
        with FileLock(self.directory / LOCK):
            count = self._count() + 1 if outcome == "unusable" else 0
            write_atomic(self.directory / COUNT, str(count))
            if count >= self.limit and self.cause() is None:
                write_atomic(self.directory / STOP, f"{count} consecutive unusable cells, the last one: {cause}")

    def _count(self) -> int:
        try:
            return int((self.directory / COUNT).read_text())
        except FileNotFoundError:
            return 0

    def cause(self) -> str | None:
        """Return why the sweep is stopped, or none while it is not."""
        try:
            return (self.directory / STOP).read_text()
        except FileNotFoundError:
            return None
