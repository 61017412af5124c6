"""What every policy shares: its options, its ruling, and the evidence that it needs before it rules at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field

from pytest_wfbench.evidence.manifest import Asked, Metric
from pytest_wfbench.evidence.row import Block, Row
from pytest_wfbench.matrix.subject import moves
from pytest_wfbench.statistics.aggregate import Measure, Number
from pytest_wfbench.statistics.paired import Pair, Side
from pytest_wfbench.statistics.uncertain import Unit

TOLERANCE = 1e-9

Decided = Literal["promote", "keep_incumbent", "insufficient_evidence"]


class PolicyOptions(Block):
    """Thresholds of the gate: percents for metrics, score points for ``min_f1_gain``, all above 0."""

    metric: Metric = "cost_usd"
    min_runs: int = Field(3, gt=0)
    min_improvement_pct: float = Field(5.0, gt=0)
    max_task_regression_pct: float = Field(20.0, gt=0)
    min_f1_gain: float = Field(0.01, gt=0)
    confidence: float | None = Field(None, gt=0, lt=1)


def policy_options(asked: Asked) -> PolicyOptions:
    """Return the thresholds among the options of a sweep."""
    return PolicyOptions(
        metric=asked.promotion_metric,
        min_runs=asked.promotion_min_runs,
        min_improvement_pct=asked.promotion_min_improvement,
        max_task_regression_pct=asked.promotion_max_task_regression,
        min_f1_gain=asked.promotion_min_f1_gain,
        confidence=asked.promotion_confidence,
    )


@dataclass(frozen=True)
class Comparison:
    """A candidate against its incumbent on their paired tasks, sorted."""

    incumbent: str
    candidate: str
    pairs: tuple[Pair, ...]
    options: PolicyOptions

    def sides(self, pair: Pair) -> tuple[tuple[str, Side], tuple[str, Side]]:
        """Return a pair's sides with the names of their arms, the incumbent first."""
        return (self.incumbent, pair.incumbent), (self.candidate, pair.candidate)


@dataclass(frozen=True)
class Ruling:
    """What a policy says: each reason is a sentence with numbers; every pair's name is gated or ungated."""

    decision: Decided
    reasons: tuple[str, ...]
    gated: tuple[str, ...]
    ungated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contrast:
    """A metric's differences task by task, above 0 where the candidate is better; none where one is unknown.

    In the ``unit``, as is ``gain``: what the policy asks for at least.
    """

    metric: str
    unit: Unit
    gain: float
    differences: tuple[float | None, ...]

    @property
    def known(self) -> tuple[float, ...]:
        """Those that are known."""
        return tuple(value for value in self.differences if value is not None)


class Policy(Protocol):
    """How a candidate is weighed on tasks of one kind."""

    @property
    def name(self) -> str:
        """What decisions call it."""
        ...

    @property
    def more_is_better(self) -> bool:
        """Whether its metric is a score rather than a cost."""
        ...

    def metric(self, options: PolicyOptions) -> str:
        """Name what is compared."""
        ...

    def measure(self, options: PolicyOptions) -> Measure:
        """Return how it is read from a run."""
        ...

    def rule(self, comparison: Comparison) -> Ruling:
        """Decide."""
        ...

    def contrasts(self, comparison: Comparison) -> tuple[Contrast, ...]:
        """Return every metric's differences on the tasks that decide, the compared metric first."""
        ...


Rule = Callable[[Comparison], Iterator[str]]


def findings(rules: Iterable[Rule], comparison: Comparison) -> tuple[str, ...]:
    """Return the reasons that the rules find, in their order."""
    return tuple(reason for rule in rules for reason in rule(comparison))


def something_is_paired(comparison: Comparison) -> Iterator[str]:
    """There is at least one task."""
    if not comparison.pairs:
        yield f"0 tasks were run under {comparison.candidate}, 1 is needed."


def model_is_named(comparison: Comparison) -> Iterator[str]:
    """Every row names a model that does not move."""
    rows = [run.row for pair in comparison.pairs for side in (pair.incumbent, pair.candidate) for run in side.runs]
    unnamed = sum(row.requested_model is None for row in rows)
    moving = sorted({row.requested_model for row in rows if row.requested_model and moves(row.requested_model)})
    if unnamed:
        yield f"{unnamed} of {len(rows)} runs name no model: evidence is bound to one."
    for model in moving:
        yield f"{model} is an alias that moves: 1 named version is needed."


def runs_are_enough(comparison: Comparison) -> Iterator[str]:
    """Both arms have enough valid runs of every task, as many as each other, and no unusable one."""
    for pair in comparison.pairs:
        for arm, side in comparison.sides(pair):
            yield from _too_few(pair, arm, side, comparison.options.min_runs)
        incumbent, candidate = len(pair.incumbent.valid), len(pair.candidate.valid)
        if incumbent != candidate:
            yield f"{pair.name}: {_valid_runs(incumbent)} against {candidate}: the counts must be equal."


def rows_are_sandboxed(comparison: Comparison) -> Iterator[str]:
    """Every row was measured in bubblewrap."""
    rows = [run.row for pair in comparison.pairs for side in (pair.incumbent, pair.candidate) for run in side.runs]
    if outside := sum(row.sandbox != "bwrap" for row in rows):
        yield f"{outside} of {len(rows)} runs were made outside the bwrap sandbox: such evidence is not promotable."


SHARED: tuple[Rule, ...] = (something_is_paired, model_is_named, runs_are_enough, rows_are_sandboxed)


def _too_few(pair: Pair, arm: str, side: Side, needed: int) -> Iterator[str]:
    unusable = [run.row for run in side.runs if run.row.outcome == "unusable"]
    if not side.runs:
        yield f"{pair.name}: no run under {arm}, {needed} are needed."
    elif len(side.valid) < needed:
        yield f"{pair.name}: {_valid_runs(len(side.valid))} under {arm}, {needed} are needed."
    if unusable:
        yield f"{pair.name}: {len(unusable)} of {len(side.runs)} runs under {arm} unusable ({_kinds(unusable)})."


def _valid_runs(number: int) -> str:
    return f"{number} valid run{'' if number == 1 else 's'}"


def _kinds(rows: Sequence[Row]) -> str:
    return ", ".join(sorted({row.kind or "unknown" for row in rows}))


def shown(value: Number | None) -> str:
    """Return a number as reasons show it."""
    return "unknown" if value is None else f"{value:.6g}"
