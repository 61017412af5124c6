"""What chance explains, in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.report.chance import chance_notes, chance_rows, chance_sentence
from pytest_wfbench.statistics.uncertain import Bounds, FalsePromotion, MetricUncertainty, Uncertainty

COULD = "3 runs on 6 tasks could have shown a 14.0 % cost change; the observed"


def found(fooled: FalsePromotion | None = None, binding: bool = False, **changes: Any) -> Uncertainty:
    plain = {"metric": "cost_usd", "unit": "percent", "word": "INCONCLUSIVE", "tasks": 6, "mean": 9.0, "p": 0.2,
             "p_holm": 0.8, "detectable": 14.0} | changes  # fmt: skip
    return Uncertainty(
        level=0.95, binding=binding, runs=3, metrics=(MetricUncertainty.model_validate(plain),), draws=4000, seed=1,
        false_promotion=fooled or FalsePromotion(seed=1, remark="many"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "3 runs on 6 tasks could have shown a 14.0 % cost change; the observed 9.0 % less may be noise."),
        ({"word": "IMPROVEMENT", "mean": 21.0},
         f"{COULD} 21.0 % less is more than noise explains."),
        ({"word": "REGRESSION", "mean": -21.0},
         f"{COULD} 21.0 % more is more than noise explains."),
        ({"word": "EQUIVALENT", "mean": 0.01},
         "3 runs on 6 tasks could have shown a 14.0 % cost change; the observed 0.0 % is too small to matter."),
        ({"tasks": 1, "detectable": None},
         "3 runs on 1 task could not have shown any cost change; the observed 9.0 % less may be noise."),
        ({"mean": None, "remark": "unknown on 2 of 6 tasks"},
         "3 runs on 6 tasks say nothing of a cost change: it is unknown on 2 of 6 tasks."),
        ({"metric": "weighted_f1", "unit": "weighted_f1", "mean": 0.05, "detectable": 0.12},
         "3 runs on 6 tasks could have shown a 0.120 weighted-F1 change; the observed 0.050 better may be noise."),
    ],
)  # fmt: skip
def test_sentence(changes: dict[str, Any], sentence: str) -> None:
    """One sentence says what the sweep could have shown, and what that makes of what it saw."""
    assert chance_sentence(found(**changes)) == sentence


def test_nothing() -> None:
    """Where nothing was compared nothing is said."""
    assert chance_sentence(None) is None


def test_numbers() -> None:
    """The numbers stand after it: unknown is a dash, a loss has a minus."""
    assert list(chance_rows(found(mean=-9.0))) == [("cost_usd", "INCONCLUSIVE", "−9.0 %", "–", "0.2", "0.8", "14.0 %")]
    whole = found(interval=Bounds(low=-2.0, high=3.5, level=0.95))
    assert next(chance_rows(whole))[3] == "−2.0 % … +3.5 %"


def test_notes() -> None:
    """Why there is no interval, how often the gate is fooled, and whether all that binds."""
    fooled = FalsePromotion(
        rate=0.04, interval=Bounds(low=0.026, high=0.061, level=0.95), promoted=20, draws=500, seed=1
    )
    notes = list(chance_notes(found(fooled, binding=True, remark="no interval with 6 tasks")))
    assert notes[0] == "No interval with 6 tasks."
    assert "identical candidate in 4.0 % of sweeps like this one (20 of 500" in notes[1]
    assert notes[2].endswith("; binding.")
    assert "is unknown: many." in next(chance_notes(found()))
