"""Agreement of a judge with people."""

from __future__ import annotations

import pytest

from pytest_wfbench.statistics.calibration import OneClass, calibrate


def pairs(*counts: int) -> list[tuple[bool, bool]]:
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    return [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]


@pytest.mark.parametrize(
    ("counts", "agreement", "kappa"),
    [((20, 5, 10, 15), 0.7, 0.4), ((5, 0, 0, 5), 1.0, 1.0), ((0, 5, 5, 0), 0.0, -1.0), ((5, 0, 5, 0), 0.5, 0.0),
     ((45, 15, 25, 15), 0.6, 0.1304)],
)  # fmt: skip
def test_worked_cases(counts: tuple[int, ...], agreement: float, kappa: float) -> None:
    """Agreement and Cohen's kappa of textbook tables."""
    found = calibrate(pairs(*counts))
    assert (found.agreement, found.kappa) == (pytest.approx(agreement), pytest.approx(kappa, abs=1e-4))


@pytest.mark.parametrize(
    ("counts", "told"), [((3, 2, 0, 0), "pass"), ((0, 0, 3, 1), "fail"), ((0, 0, 0, 0), "no label")]
)
def test_one_class_is_no_calibration(counts: tuple[int, ...], told: str) -> None:
    """Labels that all say the same measure nothing."""
    with pytest.raises(OneClass, match=told):
        calibrate(pairs(*counts))
