"""Signals that ask for the end are noted, and heard between two steps: never in the middle of one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytest_wfbench.apply.errors import Stopped

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heard_between_steps() -> Iterator[Callable[[str], None]]:
    """Yield what raises Stopped before a step once a signal has come. Main thread only."""
    came: list[int] = []

    def watch(step: str) -> None:
        if came:
            raise Stopped(f"stopped by {signal.Signals(came[0]).name} before this step: {step}")

    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in HEARD}
    try:
        yield watch
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
