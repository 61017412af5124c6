"""Moments as text."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return a moment, aware of its zone, as ISO 8601 in UTC with milliseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
