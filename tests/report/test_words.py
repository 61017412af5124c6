"""Numbers as people read them."""

from __future__ import annotations

import pytest

from pytest_wfbench.report.words import count, dollars, elapsed, plural, seconds, signed


@pytest.mark.parametrize("show", [count, dollars, seconds, signed])
def test_unknown(show: object) -> None:
    """The unknown is a dash, never 0."""
    assert show(None) == "–"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (count(1234567), "1,234,567"),
        (count(0), "0"),
        (dollars(1234.5), "$1,234.50"),
        (dollars(0.00012), "$0.0001"),
        (seconds(59.94), "59.9 s"),
        (seconds(59.96), "1 min 00 s"),
        (seconds(725), "12 min 05 s"),
        (seconds(12000), "3 h 20 min"),
        (signed(12.34), "+12.3 %"),
        (signed(-12.36), "−12.4 %"),
        (signed(-0.01), "±0.0 %"),
        (plural(1, "cell"), "1 cell"),
        (plural(1200, "cell"), "1,200 cells"),
    ],
)
def test_numbers(shown: str, expected: str) -> None:
    """Counts have thousands separators, money and time the digits that matter."""
    assert shown == expected


def test_elapsed() -> None:
    """Time between two moments is unknown where one is missing or does not read."""
    start = "2026-11-30T12:00:00.000Z"
    assert elapsed(start, "2026-11-30T12:01:00.500Z") == 60.5
    assert (elapsed(start, None), elapsed(start, "soon"), elapsed(start, "2026-11-30T12:00:00")) == (None, None, None)
