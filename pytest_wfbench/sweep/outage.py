"""The outage stop: consecutive unusable cells, counted over every process of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from filelock import FileLock

from pytest_wfbench.files import write_atomic
from pytest_wfbench.space import Reserve, because, is_full

LOCK, COUNT, STOP = "outage.lock", "outage.count", "stop"
Why = Literal["outage", "budget"]
ASIDE = 1 << 16


class Halt(NamedTuple):
    """A sweep that was stopped: why in one word, and in a sentence."""

    kind: Why
    cause: str


@dataclass(frozen=True)
class OutageGuard:
    """Counts in ``directory``, which all workers of a sweep share. ``limit`` 0 switches it off.

    Each process counts a cell when it ends, before it may start another: so once the limit is reached only cells that
    were already running elsewhere finish.
    """

    directory: Path
    limit: int

    def prepare(self) -> None:
        """Set space aside, so that a full disk can still be told to every process. Raises OSError."""
        Reserve(self.directory).take(ASIDE)

    def note(self, outcome: str, cause: str, incident: str = "") -> None:
        """Count a finished cell: an unusable one adds to the row of them, a graded one ends it.

        Cells in a row that one ``incident`` ended count as one: how many ran just then says nothing of the next.
        """
        if not self.limit or outcome == "skipped":
            return
        try:
            self._count_in(outcome, cause, incident)
        except OSError as error:
            if not is_full(error):
                raise
            self.halt(because(error, self.directory))

    def halt(self, cause: str, kind: Why = "outage") -> None:
        """Stop the sweep at once: what happened would happen to every further cell. Raises OSError."""
        if self.halted() is not None:
            return
        text = f"{kind}\n{cause}"
        try:
            write_atomic(self.directory / STOP, text)
        except OSError as error:
            if not (is_full(error) and Reserve(self.directory).give_back()):
                raise
            write_atomic(self.directory / STOP, text)

    def _count_in(self, outcome: str, cause: str, incident: str) -> None:
        with FileLock(self.directory / LOCK):
            before, last = self._count()
            more = 0 if incident and incident == last else 1
            count = before + more if outcome == "unusable" else 0
            write_atomic(self.directory / COUNT, f"{count} {incident}".rstrip(), lasting=False)
            if count >= self.limit:
                self.halt(f"{count} consecutive unusable cells, the last one: {cause}")

    def _count(self) -> tuple[int, str]:
        try:
            number, _, incident = (self.directory / COUNT).read_text().partition(" ")
        except FileNotFoundError:
            return 0, ""
        return int(number), incident

    def halted(self) -> Halt | None:
        """Return why the sweep is stopped, or none while it is not."""
        try:
            kind, _, cause = (self.directory / STOP).read_text().partition("\n")
        except FileNotFoundError:
            return None
        return Halt("budget" if kind == "budget" else "outage", cause)

    def cause(self) -> str | None:
        """Return the sentence of it, or none."""
        halt = self.halted()
        return halt.cause if halt else None
