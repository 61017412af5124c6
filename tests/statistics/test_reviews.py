"""Scores over repeats."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pytest_wfbench.evidence.store import Run
from pytest_wfbench.statistics.reviews import Scores, over_repeats, scores_of

GOOD: dict[str, Any] = {
    "weighted_f1": 0.8,
    "blocker_recall": 1.0,
    "false_positives": 1,
    "verdict_correct": True,
    "clean_pass": False,
    "clean_control": False,
}


def runs(demo: ModuleType, *changes: dict[str, Any]) -> list[Run]:
    return [Run((demo.row(run=n, task_kind="review", review=GOOD | change),)) for n, change in enumerate(changes, 1)]


def test_repeats(demo: ModuleType) -> None:
    """Scores are medians, blocker recall is the lowest, flags hold only where all do."""
    found = over_repeats(runs(demo, {"weighted_f1": 0.5}, {"blocker_recall": 0.5}, {"verdict_correct": False}))
    assert found == Scores(0.8, 0.5, 1.0, False, False, False)


def test_unknown(demo: ModuleType) -> None:
    """A score that one run leaves unknown is unknown over repeats."""
    found = over_repeats(runs(demo, {}, {"weighted_f1": None, "blocker_recall": None, "verdict_correct": None}))
    assert found == Scores(None, None, 1.0, None, False, False)


def test_wrong_types(demo: ModuleType) -> None:
    """A score of the wrong type is unknown, not converted."""
    (run,) = runs(demo, {"weighted_f1": True, "false_positives": "0", "verdict_correct": 1, "clean_pass": "yes"})
    assert scores_of(run) == Scores(None, 1.0, None, None, None, False)
