"""``usage.jsonl``: one line per upstream request, by one writer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from pytest_wfbench.clock import now, stamp
from pytest_wfbench.gateway.api import Event


class Sink(Protocol):
    """Where events go."""

    def write(self, event: Event) -> None:
        """Hand one line to the kernel: it survives the death of this process."""
        ...

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        ...


class EventLog:
    """Appends events to a file. Open one a sweep."""

    def __init__(self, path: Path) -> None:
        """Open ``path`` for appending; a torn last line is closed first. Raises OSError."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        end = os.fstat(self._descriptor).st_size
        if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
            os.write(self._descriptor, b"\n")
        self._dirty = False

    def write(self, event: Event) -> None:
        """Hand one line to the kernel: it survives the death of this process."""
        line = event.model_dump_json().encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]
        self._dirty = True

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        if self._dirty:
            os.fsync(self._descriptor)
            self._dirty = False

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        os.close(self._descriptor)


def timestamp() -> str:
    """Return now, UTC, ISO 8601 with milliseconds."""
    return stamp(now())
