"""Policy A: review tasks, quality first. Cost and latency never buy quality back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytest_wfbench.promotion.chance import sure
from pytest_wfbench.promotion.rules import (
    SHARED,
    TOLERANCE,
    Comparison,
    Contrast,
    Decided,
    PolicyOptions,
    Ruling,
    findings,
    shown,
)
from pytest_wfbench.statistics.aggregate import Measure
from pytest_wfbench.statistics.paired import Pair
from pytest_wfbench.statistics.reviews import Scores, every, lowest, middle, scores_of, weighted_f1

Read = Callable[[Scores], object]


def _f1(scores: Scores) -> float | None:
    return scores.weighted_f1


def _recall(scores: Scores) -> float | None:
    return scores.blocker_recall


def _alarms(scores: Scores) -> float | None:
    return scores.false_positives


def _verdict(scores: Scores) -> bool | None:
    return scores.verdict_correct


def _clean(scores: Scores) -> bool | None:
    return scores.clean_pass


def _control(scores: Scores) -> bool | None:
    return scores.clean_control


@dataclass(frozen=True)
class ReviewPolicy:
    """A candidate is promoted when no score of any task gets worse and one task gets clearly better."""

    name: str = "review"
    more_is_better: bool = True

    def metric(self, options: PolicyOptions) -> str:
        """Always the weighted F1."""
        return "weighted_f1"

    def measure(self, options: PolicyOptions) -> Measure:
        """How it is read."""
        return weighted_f1

    def rule(self, comparison: Comparison) -> Ruling:
        """Decide: insufficient evidence before keeping, keeping before promoting."""
        names = tuple(pair.name for pair in comparison.pairs)
        if missing := findings((*SHARED, scores_are_known), comparison):
            return Ruling("insufficient_evidence", missing, names)
        rules = (verdicts_are_right, blockers_are_found, clean_stays_clean, no_task_gets_worse)
        if against := findings(rules, comparison):
            return Ruling("keep_incumbent", against, names)
        decision, reasons = weigh(comparison)
        return Ruling(decision, reasons, names)

    def contrasts(self, comparison: Comparison) -> tuple[Contrast, ...]:
        """The weighted F1 of the defect tasks."""
        pairs = [pair for pair in comparison.pairs if not is_clean(pair)]
        gains = {pair.name: after - before for pair, before, after in _gains(comparison)}
        differences = tuple(gains.get(pair.name) for pair in pairs)
        return (Contrast("weighted_f1", "weighted_f1", comparison.options.min_f1_gain, differences),)


def _scores(pair: Pair) -> list[Scores]:
    return [scores_of(run) for side in (pair.incumbent, pair.candidate) for run in side.valid]


def is_clean(pair: Pair) -> bool | None:
    """Whether a task is a clean control; none where no row says, or those that do contradict each other."""
    said = _said(pair)
    return said.pop() if len(said) == 1 else None


def _said(pair: Pair) -> set[bool]:
    return {scores.clean_control for scores in _scores(pair) if scores.clean_control is not None}


def has_blocker(pair: Pair) -> bool:
    """Whether the labels hold a blocking one, as far as any row tells."""
    return any(scores.blocker_recall is not None for scores in _scores(pair))


def _needed(pair: Pair) -> Iterator[tuple[str, Read]]:
    yield "clean_control", _control
    yield "false_positives", _alarms
    yield "verdict_correct", _verdict
    clean = is_clean(pair)
    if clean:
        yield "clean_pass", _clean
    elif clean is False:
        yield "weighted_f1", _f1
    if has_blocker(pair):
        yield "blocker_recall", _recall


def scores_are_known(comparison: Comparison) -> Iterator[str]:
    """Every score that a later rule needs is in every valid run."""
    for pair in comparison.pairs:
        scores = _scores(pair)
        if len(_said(pair)) > 1:
            yield f"{pair.name}: {len(scores)} valid runs do not agree on whether it is a clean control."
        for name, read in _needed(pair):
            if unknown := sum(read(entry) is None for entry in scores):
                yield f"{pair.name}: {name} is unknown in {unknown} of {len(scores)} valid runs."


def verdicts_are_right(comparison: Comparison) -> Iterator[str]:
    """Every valid candidate run has the correct verdict."""
    for pair in comparison.pairs:
        valid = pair.candidate.valid
        if wrong := sum(scores_of(run).verdict_correct is not True for run in valid):
            yield f"{pair.name}: {wrong} of {len(valid)} verdicts of {comparison.candidate} are wrong, 0 are allowed."


def blockers_are_found(comparison: Comparison) -> Iterator[str]:
    """The candidate's lowest blocker recall is no lower than the incumbent's."""
    for pair in comparison.pairs:
        before, after = lowest(pair.incumbent.valid, _recall), lowest(pair.candidate.valid, _recall)
        if before is not None and after is not None and after < before - TOLERANCE:
            yield f"{pair.name}: lowest blocker recall fell from {shown(before)} to {shown(after)}."


def clean_stays_clean(comparison: Comparison) -> Iterator[str]:
    """On a clean control there are no more false positives at the median, and a clean pass is not lost."""
    for pair in filter(is_clean, comparison.pairs):
        before, after = middle(pair.incumbent.valid, _alarms), middle(pair.candidate.valid, _alarms)
        if before is not None and after is not None and after > before + TOLERANCE:
            yield f"{pair.name}: median false positives on a clean control rose from {shown(before)} to {shown(after)}."
        if every(pair.incumbent.valid, _clean) and not every(pair.candidate.valid, _clean):
            lost = sum(scores_of(run).clean_pass is not True for run in pair.candidate.valid)
            yield f"{pair.name}: {lost} of {len(pair.candidate.valid)} runs lost the clean pass, 0 are allowed."


def _gains(comparison: Comparison) -> Iterator[tuple[Pair, float, float]]:
    for pair in comparison.pairs:
        before, after = middle(pair.incumbent.valid, _f1), middle(pair.candidate.valid, _f1)
        if not is_clean(pair) and before is not None and after is not None:
            yield pair, before, after


def no_task_gets_worse(comparison: Comparison) -> Iterator[str]:
    """The median weighted F1 of no defect task falls."""
    for pair, before, after in _gains(comparison):
        if after < before - TOLERANCE:
            yield f"{pair.name}: median weighted F1 fell from {shown(before)} to {shown(after)}."


def weigh(comparison: Comparison) -> tuple[Decided, tuple[str, ...]]:
    """Return whether one defect task gained enough, and why."""
    needed = comparison.options.min_f1_gain
    found = tuple(_gains(comparison))
    if not found:
        return "keep_incumbent", (f"0 of {len(comparison.pairs)} tasks hold defects, so nothing can get better.",)
    best, name = min(((after - before, pair.name) for pair, before, after in found), key=lambda g: (-g[0], g[1]))
    enough = best >= needed - TOLERANCE
    verb = "was" if enough else "is"
    reason = f"Best gain in median weighted F1 is {shown(best)} ({name}), at least {needed:g} {verb} needed."
    differences = [after - before for _, before, after in found]
    decision: Decided = "promote" if enough else "keep_incumbent"
    return sure(decision, reason, "the mean gain in weighted F1", differences, comparison.options)
