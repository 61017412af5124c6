"""``usage.jsonl``: one line per upstream request, by one writer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from pytest_wfbench.clock import now, stamp
from pytest_wfbench.files import append_whole
from pytest_wfbench.gateway.api import Event
from pytest_wfbench.space import because


class Sink(Protocol):
    """Where events go."""

    def write(self, event: Event) -> None:
        """Hand one line to the kernel: it survives the death of this process."""
        ...

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        ...


class EventLog:
    """Appends events to a file. Open one a sweep.

    ``failed`` says why an event could not be written, once one could not: the calls in flight still end, and their
    events still reach the rows, but no new session may be opened over an account with gaps.
    """

    failed: str | None = None

    def __init__(self, path: Path) -> None:
        """Open ``path`` for appending; a torn last line is closed first. Raises OSError."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        end = os.fstat(self._descriptor).st_size
        if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
            os.write(self._descriptor, b"\n")
        self._place = path.parent
        self._dirty = False

    def write(self, event: Event) -> None:
        """Hand one line to the kernel: it survives the death of this process."""
        line = event.model_dump_json().encode() + b"\n"
        try:
            append_whole(self._descriptor, line, os.fstat(self._descriptor).st_size)
        except OSError as error:
            self.failed = self.failed or because(error, self._place)
        self._dirty = True

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        if self._dirty:
            self._dirty = False
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self.failed = self.failed or because(error, self._place)

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        os.close(self._descriptor)


def timestamp() -> str:
    """Return now, UTC, ISO 8601 with milliseconds."""
    return stamp(now())
