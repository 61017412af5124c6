"""Moments as text: the one place that reads the wall clock, which may be set at any time and is for people to read."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the moment, in UTC. Never to be subtracted from another: durations are of ``time.monotonic``."""
    return _read()


def _read() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return a moment, aware of its zone, as ISO 8601 in UTC with milliseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
