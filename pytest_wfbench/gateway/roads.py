"""Roads that a provider has closed for a while: it said when to come again."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime

from pytest_wfbench.clock import now
from pytest_wfbench.evidence.manifest import Pause

# No provider's word closes a road for longer; none is asked again sooner.
LONGEST, SHORTEST = 120.0, 1.0
SECONDS = re.compile(r"\d+(\.\d*)?\Z", re.ASCII)
TOO_MANY = 429
# How often, and for how many seconds in all, one request of a client waits for its road.
REPEATS, PATIENCE = 8, 240.0


def pause_of(status: int, retry_after: str | None) -> float | None:
    """Return for how many seconds an answer closes its road, in bounds; none if it does not."""
    if status != TOO_MANY or retry_after is None:
        return None
    asked = _seconds(retry_after.strip())
    return None if asked is None else min(max(asked, SHORTEST), LONGEST)


def _seconds(text: str) -> float | None:
    """Read both forms of the header: seconds, or a date, which is GMT."""
    if SECONDS.match(text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    at = date if date.tzinfo else date.replace(tzinfo=UTC)
    return (at - now()).total_seconds()


@dataclass
class Roads:
    """Which roads are closed, by requested model, and for how long each was."""

    _until: dict[str, float] = field(default_factory=dict)
    _times: dict[str, int] = field(default_factory=dict)
    _closed: dict[str, float] = field(default_factory=dict)

    def close(self, model: str, seconds: float) -> None:
        """Close a road from now on; one that is closed for longer stays so."""
        at = time.monotonic()
        before = max(self._until.get(model, at), at)
        until = max(before, at + seconds)
        self._until[model] = until
        self._times[model] = self._times.get(model, 0) + 1
        self._closed[model] = self._closed.get(model, 0.0) + until - before

    def is_open(self, model: str) -> bool:
        """Whether requests for the model may go."""
        return self._until.get(model, 0.0) <= time.monotonic()

    async def opened(self, model: str) -> None:
        """Wait until they may."""
        while (left := self._until.get(model, 0.0) - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def pauses(self) -> tuple[Pause, ...]:
        """Return what was paused so far."""
        return tuple(
            Pause(model=model, times=times, seconds=round(self._closed[model], 3))
            for model, times in sorted(self._times.items())
        )


@dataclass
class Patience:
    """What one request of a client has left to wait for its road."""

    repeats: int = REPEATS
    seconds: float = PATIENCE

    def spend(self, pause: float | None) -> bool:
        """Whether the request is to be repeated after such a pause; if so, take it off."""
        if pause is None or not self.repeats or pause > self.seconds:
            return False
        self.repeats -= 1
        self.seconds -= pause
        return True
