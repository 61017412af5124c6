"""Rows → one summary per task, variation, arm and subject. Order never matters; unknown stays unknown."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Run
from pytest_wfbench.matrix.task import TaskKind

GRADED = frozenset({"pass", "miss"})

Number = float | int
Measure = Callable[[Run], Number | None]


class Key(NamedTuple):
    """What a summary is of. Order is that of the reports."""

    task: str
    variation: int
    arm: str
    subject: str

    @property
    def unit(self) -> str:
        """The task as reports name it: ``id``, or ``id~v1`` for a variation."""
        return unit_name(self.task, self.variation)


@dataclass(frozen=True)
class Summary:
    """What is known of one task under one arm.

    ``valid`` runs are graded ones; ``unusable`` the rest. Numbers are medians over valid runs, ``None`` where any of
    them is unknown: tokens (``tokens_in`` is all input, cached included), ``cost_usd`` (all attempts of a run, USD),
    ``wall`` (session seconds), ``turns``, ``churn`` (lines inserted and deleted), ``tools`` (calls). ``models``
    answered, and ``accounting`` says where their tokens were counted.
    """

    key: Key
    kind: TaskKind
    runs: tuple[Run, ...]
    valid: int
    resolved: int
    unusable: int
    tokens_in: Number | None
    tokens_cached: Number | None
    tokens_out: Number | None
    cost_usd: Number | None
    wall: Number | None
    turns: Number | None
    churn: Number | None
    tools: Number | None
    models: tuple[str, ...]
    accounting: tuple[str, ...] = ()

    @property
    def tokens(self) -> Number | None:
        """All input, cached included, and output; unknown where either is."""
        return None if self.tokens_in is None or self.tokens_out is None else self.tokens_in + self.tokens_out

    @property
    def graded(self) -> tuple[Run, ...]:
        """The valid runs."""
        return graded(self.runs)


def unit_name(task: str, variation: int) -> str:
    """Return how a task and its variation are named."""
    return f"{task}~v{variation}" if variation else task


def is_graded(row: Row) -> bool:
    """Whether a row is evidence about quality."""
    return row.outcome in GRADED


def graded(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs that are evidence about quality."""
    return tuple(run for run in runs if is_graded(run.row))


def count_resolved(runs: Iterable[Run]) -> int:
    """Return how many runs passed."""
    return sum(run.row.outcome == "pass" for run in runs)


def tokens_in(run: Run) -> Number | None:
    """All input tokens of the newest attempt, cached included."""
    return None if run.row.usage_incomplete else run.row.usage.total_input


def tokens_cached(run: Run) -> Number | None:
    """Input tokens of the newest attempt that were read from a cache."""
    return None if run.row.usage_incomplete else run.row.usage.cache_read_input


def output_tokens(run: Run) -> Number | None:
    """Output tokens of the newest attempt."""
    return None if run.row.usage_incomplete else run.row.usage.output


def cost_usd(run: Run) -> Number | None:
    """USD of all attempts: an attempt that was thrown away was paid for."""
    costs = [None if row.usage_incomplete else row.cost_usd for row in run.attempts]
    return total(costs)


def duration_s(run: Run) -> Number | None:
    """Seconds of all sessions of the newest attempt."""
    return run.row.timings.session


def num_turns(run: Run) -> Number | None:
    """Completed upstream answers of the newest attempt."""
    return run.row.num_turns


def churn_lines(run: Run) -> Number | None:
    """Lines inserted and deleted by the newest attempt."""
    churn = run.row.churn
    return None if churn is None else churn.insertions + churn.deletions


def tool_calls(run: Run) -> Number | None:
    """Tool calls of the newest attempt."""
    calls = run.row.tool_calls
    return None if calls is None else sum(calls.values())


def total(values: Iterable[Number | None]) -> Number | None:
    """Return the sum, or none where a value is unknown or there is none."""
    given = list(values)
    known = [value for value in given if value is not None]
    if not known or len(known) < len(given):
        return None
    # Floats are added exactly, so that their order does not matter; counts stay counts.
    return sum(known) if all(isinstance(value, int) for value in known) else math.fsum(known)


def median_of(runs: Iterable[Run], measure: Measure) -> Number | None:
    """Return the median of a measure, or none where any run leaves it unknown or there is no run."""
    values = [measure(run) for run in runs]
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def summarise(runs: Iterable[Run]) -> tuple[Summary, ...]:
    """Return the summaries of all keys, sorted by key."""
    groups: dict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        row = run.row
        groups[Key(row.task, row.variation, row.arm, row.subject)].append(run)
    return tuple(_summary(key, groups[key]) for key in sorted(groups))


def _summary(key: Key, members: list[Run]) -> Summary:
    runs = tuple(sorted(members, key=lambda run: run.key))
    valid = graded(runs)
    return Summary(
        key=key,
        kind=runs[0].row.task_kind,
        runs=runs,
        valid=len(valid),
        resolved=count_resolved(valid),
        unusable=sum(run.row.outcome == "unusable" for run in runs),
        tokens_in=median_of(valid, tokens_in),
        tokens_cached=median_of(valid, tokens_cached),
        tokens_out=median_of(valid, output_tokens),
        cost_usd=median_of(valid, cost_usd),
        wall=median_of(valid, duration_s),
        turns=median_of(valid, num_turns),
        churn=median_of(valid, churn_lines),
        tools=median_of(valid, tool_calls),
        models=tuple(sorted({model for run in valid for model in run.row.models_answered or ()})),
        accounting=tuple(sorted({run.row.usage_source for run in valid if run.row.usage_source})),
    )
