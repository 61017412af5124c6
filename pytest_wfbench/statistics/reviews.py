"""Scores of review rows, typed, and what several repeats say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pytest_wfbench.evidence.store import Run


@dataclass(frozen=True)
class Scores:
    """What the gate reads of one review; ``None`` where the row does not say, or where the score is undefined."""

    weighted_f1: float | None
    blocker_recall: float | None
    false_positives: float | None
    verdict_correct: bool | None
    clean_pass: bool | None
    clean_control: bool | None


def scores_of(run: Run) -> Scores:
    """Return a run's scores; a field of the wrong type is unknown."""
    found = run.row.review or {}
    return Scores(
        weighted_f1=_number(found.get("weighted_f1")),
        blocker_recall=_number(found.get("blocker_recall")),
        false_positives=_number(found.get("false_positives")),
        verdict_correct=_flag(found.get("verdict_correct")),
        clean_pass=_flag(found.get("clean_pass")),
        clean_control=_flag(found.get("clean_control")),
    )


def weighted_f1(run: Run) -> float | None:
    """Weighted F1 of a run, 0..1."""
    return scores_of(run).weighted_f1


def false_positives(run: Run) -> float | None:
    """Findings of a run that match no label."""
    return scores_of(run).false_positives


def lowest(runs: Iterable[Run], read: Callable[[Scores], float | None]) -> float | None:
    """Return the least value of a score, or none where a run leaves it unknown or there is no run."""
    values = [read(scores_of(run)) for run in runs]
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def middle(runs: Iterable[Run], read: Callable[[Scores], float | None]) -> float | None:
    """Return the median of a score, or none where a run leaves it unknown or there is no run."""
    values = [read(scores_of(run)) for run in runs]
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def every(runs: Iterable[Run], read: Callable[[Scores], bool | None]) -> bool | None:
    """Return whether a flag holds in every run, or none where a run leaves it unknown or there is no run."""
    values = [read(scores_of(run)) for run in runs]
    return None if not values or None in values else all(values)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def over_repeats(runs: Sequence[Run]) -> Scores:
    """Return what repeats say together: medians, the lowest blocker recall, flags only where all hold."""
    return Scores(
        weighted_f1=middle(runs, lambda scores: scores.weighted_f1),
        blocker_recall=lowest(runs, lambda scores: scores.blocker_recall),
        false_positives=middle(runs, lambda scores: scores.false_positives),
        verdict_correct=every(runs, lambda scores: scores.verdict_correct),
        clean_pass=every(runs, lambda scores: scores.clean_pass),
        clean_control=every(runs, lambda scores: scores.clean_control),
    )
