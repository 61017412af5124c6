"""Numbers as people read them. Unknown is a dash, never 0."""

from __future__ import annotations

from datetime import datetime

from pytest_wfbench.statistics.aggregate import Number

UNKNOWN = "–"
MINUS = "−"


def count(value: Number | None) -> str:
    """Return a count with thousands separators; medians between two counts are rounded."""
    return UNKNOWN if value is None else f"{round(value):,}"


def dollars(value: Number | None) -> str:
    """Return USD: cents for a dollar and more, four decimals below."""
    return UNKNOWN if value is None else f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def seconds(value: Number | None) -> str:
    """Return a duration: ``48.0 s``, ``12 min 05 s``, ``3 h 20 min``."""
    if value is None:
        return UNKNOWN
    if round(value, 1) < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def signed(value: Number | None) -> str:
    """Return a percentage with its sign: ``+4.0 %``, ``−12.5 %``."""
    if value is None:
        return UNKNOWN
    rounded = round(value, 1)
    sign = "+" if rounded > 0 else MINUS if rounded < 0 else "±"
    return f"{sign}{abs(rounded):.1f} %"


def plural(number: int, word: str) -> str:
    """Return ``1 cell`` or ``2 cells``."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def elapsed(start: str | None, end: str | None) -> float | None:
    """Return the seconds between two ISO 8601 times, or none where one is missing, does not read, or the end is first.

    The last is what a clock leaves that was set back in between.
    """
    if start is None or end is None:
        return None
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None
    return seconds if seconds >= 0 else None
