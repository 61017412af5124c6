"""Looks at what a running command uses, now and then: the dearer a look was, the later the next one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from pytest_wfbench.sandbox.spec import Excess

FIRST_LOOK = 0.2
SHARE = 20.0


class Meter(Protocol):
    """Something that can be told about a running command."""

    @property
    def pause(self) -> float:
        """The least time to the next look, in seconds."""
        ...

    def look(self) -> Excess | None:
        """Say what limit the command exceeds now."""
        ...

    def last(self) -> Excess | None:
        """Say what limit the command had exceeded when it, and all that it started, had ended."""
        ...


class Watch:
    """The meters of one command. No look is due in its first ``FIRST_LOOK`` seconds, so a short one costs nothing.

    The looks of a meter take at most one ``SHARE``-th of a core.
    """

    def __init__(self, meters: Sequence[Meter]) -> None:
        self._meters = tuple(meters)
        self._due = [time.monotonic() + FIRST_LOOK] * len(self._meters)

    def look(self) -> Excess | None:
        """Return the first limit that is exceeded, as far as a look is due."""
        now = time.monotonic()
        for number, meter in enumerate(self._meters):
            if now >= self._due[number]:
                began = time.thread_time()
                found = meter.look()
                cost = time.thread_time() - began
                self._due[number] = time.monotonic() + max(meter.pause, SHARE * cost)
                if found is not None:
                    return found
        return None

    def last(self) -> Excess | None:
        """Return the first limit that was exceeded in the end."""
        return next((found for meter in self._meters if (found := meter.last()) is not None), None)
