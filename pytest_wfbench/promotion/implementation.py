"""Policy B: implementation tasks, cost at equal quality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

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
from pytest_wfbench.statistics.aggregate import Measure, cost_usd, duration_s, num_turns, output_tokens
from pytest_wfbench.statistics.paired import Pair, median_improvement

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {"cost_usd": cost_usd, "output_tokens": output_tokens, "duration_s": duration_s, "num_turns": num_turns}
)
SKILL_FAILURES = frozenset({"skill-not-invoked", "plan-invalid", "skill-changed"})
UNGATED_REGRESSION_PCT = 100.0
DECISIVE_MARGIN = 2


@dataclass(frozen=True)
class ImplementationPolicy:
    """A candidate is promoted when it loses no quality and is clearly cheaper, or clearly resolves more."""

    name: str = "implementation"
    more_is_better: bool = False

    def metric(self, options: PolicyOptions) -> str:
        """The metric that was asked for."""
        return options.metric

    def measure(self, options: PolicyOptions) -> Measure:
        """How that metric is read."""
        return MEASURES[options.metric]

    def rule(self, comparison: Comparison) -> Ruling:
        """Decide: insufficient evidence before keeping, keeping before promoting."""
        gated = tuple(pair.name for pair in comparison.pairs if is_gated(pair))
        ungated = tuple(pair.name for pair in comparison.pairs if not is_gated(pair))
        if missing := findings((*SHARED, metric_is_known, enough_is_gated), comparison):
            return Ruling("insufficient_evidence", missing, gated, ungated)
        if against := findings((ungated_is_bearable, nothing_is_lost, no_task_regresses), comparison):
            return Ruling("keep_incumbent", against, gated, ungated)
        decision, reasons = weigh(comparison)
        return Ruling(decision, reasons, gated, ungated)

    def contrasts(self, comparison: Comparison) -> tuple[Contrast, ...]:
        """All four metrics on the gated tasks, the asked one first."""
        asked, gated = comparison.options.metric, [pair for pair in comparison.pairs if is_gated(pair)]
        names = (asked, *(name for name in MEASURES if name != asked))
        return tuple(_contrast(name, gated, comparison.options) for name in names)


def is_gated(pair: Pair) -> bool:
    """Whether a task decides: the incumbent resolved a run, or a run of either arm failed for its skill's sake."""
    runs = (*pair.incumbent.valid, *pair.candidate.valid)
    return pair.incumbent.resolved > 0 or any(run.row.kind in SKILL_FAILURES for run in runs)


def metric_is_known(comparison: Comparison) -> Iterator[str]:
    """The metric is known in every valid run, and the incumbent's median is not 0."""
    measure, metric = MEASURES[comparison.options.metric], comparison.options.metric
    for pair in comparison.pairs:
        for arm, side in comparison.sides(pair):
            if unknown := sum(measure(run) is None for run in side.valid):
                yield f"{pair.name}: {metric} is unknown in {unknown} of {len(side.valid)} valid runs under {arm}."
        if pair.incumbent.median(measure) == 0:
            yield f"{pair.name}: {metric} under {comparison.incumbent} is 0, no improvement can be measured."


def enough_is_gated(comparison: Comparison) -> Iterator[str]:
    """At least half of the tasks are gated, and at least one."""
    gated, total = sum(is_gated(pair) for pair in comparison.pairs), len(comparison.pairs)
    if 2 * gated < total:
        yield f"{gated} of {total} tasks are gated, at least half and at least 1 are needed."


def ungated_is_bearable(comparison: Comparison) -> Iterator[str]:
    """On a task that nobody is held to, the metric is at most twice the incumbent's."""
    for pair in comparison.pairs:
        if not is_gated(pair):
            yield from _worse(comparison, pair, UNGATED_REGRESSION_PCT, "ungated task")


def nothing_is_lost(comparison: Comparison) -> Iterator[str]:
    """On a gated task the candidate resolves every valid run, and no fewer than the incumbent."""
    for pair in filter(is_gated, comparison.pairs):
        resolved, valid, before = pair.candidate.resolved, len(pair.candidate.valid), pair.incumbent.resolved
        if resolved < valid or resolved < before:
            yield (
                f"{pair.name}: {comparison.candidate} resolves {resolved} of {valid} runs, all are needed"
                f" ({comparison.incumbent}: {before} of {len(pair.incumbent.valid)})."
            )


def no_task_regresses(comparison: Comparison) -> Iterator[str]:
    """On no gated task is the metric worse by more than the limit."""
    for pair in filter(is_gated, comparison.pairs):
        yield from _worse(comparison, pair, comparison.options.max_task_regression_pct, "gated task")


def weigh(comparison: Comparison) -> tuple[Decided, tuple[str, ...]]:
    """Return whether a candidate that loses nothing gains enough, and why.

    Two ways lead there, and one is enough; where neither does, insufficient evidence for one is that for both.
    """
    ways = tuple(filter(None, (_by_resolving(comparison), _by_metric(comparison))))
    for decision, reasons in ways:
        if decision == "promote":
            return decision, reasons
    decisive = sorted(ways, key=lambda way: way[0] != "insufficient_evidence")  # What decided is said first.
    return decisive[0][0], tuple(reason for _, told in decisive for reason in told)


def _by_resolving(comparison: Comparison) -> tuple[Decided, tuple[str, ...]] | None:
    differences = [float(pair.candidate.resolved - pair.incumbent.resolved) for pair in comparison.pairs]
    margin = round(sum(differences))
    if margin < DECISIVE_MARGIN:
        return None
    total = sum(len(pair.candidate.valid) for pair in comparison.pairs)
    reason = f"{margin} more of {total} runs resolved, at least {DECISIVE_MARGIN} decide."
    return sure("promote", reason, "the mean gain in resolved runs", differences, comparison.options)


def _by_metric(comparison: Comparison) -> tuple[Decided, tuple[str, ...]]:
    options, measure = comparison.options, MEASURES[comparison.options.metric]
    gated = [pair for pair in comparison.pairs if is_gated(pair)]
    gain = median_improvement(gated, measure)
    enough = gain is not None and gain >= options.min_improvement_pct - TOLERANCE
    reason = (
        f"Median {options.metric} improvement over {len(gated)} gated tasks is {shown(gain)} %,"
        f" at least {options.min_improvement_pct:g} % {'was' if enough else 'is'} needed."
    )
    differences = _contrast(options.metric, gated, options).known
    what = f"the mean {options.metric} improvement in percent"
    return sure("promote" if enough else "keep_incumbent", reason, what, differences, options)


def _contrast(metric: str, gated: Sequence[Pair], options: PolicyOptions) -> Contrast:
    differences = tuple(pair.improvement(MEASURES[metric]) for pair in gated)
    return Contrast(metric, "percent", options.min_improvement_pct, differences)


def _worse(comparison: Comparison, pair: Pair, limit: float, what: str) -> Iterator[str]:
    measure = MEASURES[comparison.options.metric]
    gain = pair.improvement(measure)
    if gain is not None and gain < -limit - TOLERANCE:
        before, after = pair.incumbent.median(measure), pair.candidate.median(measure)
        yield (
            f"{pair.name} ({what}): {comparison.options.metric} is {shown(-gain)} % worse"
            f" ({shown(before)} to {shown(after)}), at most {limit:g} % is allowed."
        )
