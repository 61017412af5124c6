"""One value from rows and manifest, of which report, terminal, comment and JSON are readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pytest_wfbench.evidence.baseline import Baseline
from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows, Run
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.report.health import health, model_changes
from pytest_wfbench.report.savings import Savings, all_savings
from pytest_wfbench.report.verdict import Verdict, judge
from pytest_wfbench.report.words import elapsed
from pytest_wfbench.statistics.aggregate import Key, Number, Summary, summarise, total
from pytest_wfbench.statistics.repeats import Repeats, repeats_of
from pytest_wfbench.statistics.uncertain import Uncertainty


class Decided(Protocol):
    """A gate's decision, as far as reports speak of it."""

    @property
    def candidate_arm(self) -> str:
        """The challenger."""
        ...

    @property
    def incumbent_arm(self) -> str | None:
        """The arm in force, none where the candidate was never run."""
        ...

    @property
    def subject(self) -> str | None:
        """Agent and model, none where the candidate was never run."""
        ...

    @property
    def decision(self) -> str:
        """One of the three words."""
        ...

    @property
    def metric(self) -> str | None:
        """What was compared."""
        ...

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences with numbers."""
        ...

    @property
    def gated_tasks(self) -> tuple[str, ...]:
        """Tasks that decided."""
        ...

    @property
    def ungated_tasks(self) -> tuple[str, ...]:
        """Tasks that did not."""
        ...

    @property
    def uncertainty(self) -> Uncertainty | None:
        """How sure it is, none where nothing was compared."""
        ...


@dataclass(frozen=True)
class Failure:
    """A cell that did not pass: ``reason`` is one the row gives, without secrets; none where it gives none."""

    key: Key
    run: int
    outcome: str
    kind: str | None
    reason: str | None


@dataclass(frozen=True)
class Spent:
    """What all attempts used: tokens (input with cache, and output), USD, seconds of the sweep.

    A number is what is known; its ``…_whole`` says whether that is all, and it is none where nothing is known.
    """

    tokens: Number | None
    tokens_whole: bool
    cost_usd: Number | None
    cost_whole: bool
    wall: float | None


@dataclass(frozen=True)
class SkippedTask:
    """Cells of one task that were not run, for one reason; ``cells`` is 0 where the whole task is meant."""

    task: str
    kind: str
    reason: str
    cells: int


@dataclass(frozen=True)
class Report:
    """Everything that is shown of a sweep. ``judges`` and ``models`` are those that answered.

    ``model_changes`` has a sentence for each subject that more than one model answered, ``baseline`` the filed sweep
    that this one is compared with.
    """

    verdict: Verdict
    sweep: Sweep
    summaries: tuple[Summary, ...]
    savings: tuple[Savings, ...]
    decisions: tuple[Decided, ...]
    failures: tuple[Failure, ...]
    skipped: tuple[SkippedTask, ...]
    health: tuple[str, ...]
    spent: Spent
    subjects: tuple[str, ...]
    models: tuple[str, ...]
    judges: tuple[str, ...]
    model_changes: tuple[str, ...] = ()
    baseline: Baseline | None = None

    @cached_property
    def repeats(self) -> tuple[Repeats, ...]:
        """What several runs of each task say of an arm together."""
        return repeats_of(self.summaries)

    @property
    def several_arms(self) -> bool:
        """Whether more than one arm was run."""
        return len({summary.key.arm for summary in self.summaries}) > 1


def summarise_sweep(
    rows: Rows, sweep: Sweep, decisions: Sequence[Decided] = (), baseline: Baseline | None = None
) -> Report:
    """Build the one value of which all reports are readers; the order of rows does not matter."""
    runs = rows.runs
    every = [row for run in runs for row in run.attempts]
    return Report(
        verdict=judge(rows, sweep),
        sweep=sweep,
        summaries=_in_order(sweep, summarise(runs)),
        savings=tuple(sorted(all_savings(runs, sweep), key=lambda entry: _rank(sweep.arms, entry.arm))),
        decisions=tuple(decisions),
        failures=tuple(_failure(run) for run in runs if run.row.outcome in ("miss", "unusable")),
        skipped=_skipped(sweep),
        health=health(rows, sweep),
        spent=_spent(every, sweep),
        subjects=tuple(sorted({row.subject for row in every} | {info.subject for info in sweep.subjects})),
        models=tuple(sorted({model for row in every for model in row.models_answered or ()})),
        judges=tuple(sorted({row.judge.model for row in every if row.judge and row.judge.model})),
        model_changes=tuple(model_changes(every)),
        baseline=baseline,
    )


def _in_order(sweep: Sweep, entries: Sequence[Summary]) -> tuple[Summary, ...]:
    """Tasks and arms stand in the order of their files."""
    ranks = {task.id: rank for rank, task in enumerate(sweep.tasks)}

    def place(entry: Summary) -> tuple[object, ...]:
        key = entry.key
        return (key.subject, ranks.get(key.task, len(ranks)), key.task, key.variation, *_rank(sweep.arms, key.arm))

    return tuple(sorted(entries, key=place))


def _rank(arms: Sequence[Arm], name: str) -> tuple[int, str]:
    return next((rank for rank, arm in enumerate(arms) if arm.name == name), len(arms)), name


def _failure(run: Run) -> Failure:
    row = run.row
    reason = Redactor().text(row.reason) if row.reason else None
    key = Key(row.task, row.variation, row.arm, row.subject)
    return Failure(key, row.run, row.outcome, row.kind, reason)


def _spent(rows: Sequence[Row], sweep: Sweep) -> Spent:
    tokens = [_tokens(row) for row in rows]
    costs = [None if row.usage_incomplete else row.cost_usd for row in rows]
    return Spent(
        tokens=total(value for value in tokens if value is not None),
        tokens_whole=None not in tokens,
        cost_usd=total(value for value in costs if value is not None),
        cost_whole=None not in costs,
        wall=elapsed(sweep.started_at, sweep.ended_at),
    )


def _tokens(row: Row) -> int | None:
    used = row.usage
    if row.usage_incomplete or used.total_input is None or used.output is None:
        return None
    return used.total_input + used.output


def _skipped(sweep: Sweep) -> tuple[SkippedTask, ...]:
    """Group what was skipped by task and reason, in an order that does not depend on that of the manifest."""
    counts = Counter((entry.task, entry.kind, entry.reason, entry.cell_id is not None) for entry in sweep.skipped)
    return tuple(SkippedTask(task, kind, why, n if one else 0) for (task, kind, why, one), n in sorted(counts.items()))
