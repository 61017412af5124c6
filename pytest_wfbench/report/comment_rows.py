"""The rows of the comment's table, unescaped: the worst first."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pytest_wfbench.report.summary import Failure, Report
from pytest_wfbench.report.versus import Compare, Reference, comparison, is_worse, token_change
from pytest_wfbench.report.words import UNKNOWN, count
from pytest_wfbench.statistics.aggregate import Key, Summary

Group = Literal["unusable", "regression", "miss", "pass"]
ORDER: tuple[Group, ...] = ("unusable", "regression", "miss", "pass")


@dataclass(frozen=True)
class Line:
    """One row of the table. ``runs`` are (run, cell id) of what it sums up."""

    group: Group
    name: str
    result: str
    reason: str | None
    delta: str
    tokens: str
    tools: str
    runs: tuple[tuple[int, str], ...] = ()


class Cause(NamedTuple):
    """What most of the unusable runs have in common: their ``kind`` and ``reason``, and ``times`` of ``total``."""

    kind: str
    reason: str
    times: int
    total: int


def common_cause(report: Report) -> Cause | None:
    """Return the one cause that is told for all of its runs, none where nothing is unusable."""
    causes = Counter(_cause_of(failure) for failure in report.failures if failure.outcome == "unusable")
    if not causes:
        return None
    (kind, reason), times = min(causes.items(), key=lambda entry: (-entry[1], entry[0]))
    return Cause(kind, reason, times, causes.total())


def _cause_of(failure: Failure) -> tuple[str, str]:
    return failure.kind or "unknown", failure.reason or ""


def comment_lines(report: Report) -> list[Line]:
    """Return the table's rows in the order they are shown: unusable, regressions, misses, passes.

    A row whose reason is the common cause has its kind alone: the cause is told once, above the table.
    """
    common = common_cause(report)
    told: dict[Key, list[Failure]] = defaultdict(list)
    for failure in report.failures:
        told[failure.key].append(failure)
    compare = comparison(report)
    lines = [_line(summary, compare, told[summary.key], report, common) for summary in report.summaries]
    gone = [
        Line("unusable", f"shard {name}", "never reported", None, UNKNOWN, UNKNOWN, UNKNOWN)
        for name in report.sweep.missing_shards
    ]
    return sorted(gone + lines, key=lambda line: ORDER.index(line.group))


def _line(summary: Summary, compare: Compare, failures: list[Failure], report: Report, common: Cause | None) -> Line:
    worst = min(failures, key=lambda failure: (failure.outcome != "unusable", failure.run), default=None)
    reference = compare(summary)
    group = _group(summary, reference)
    was = f", was {reference.resolved}/{reference.valid}" if reference and group == "regression" else ""
    return Line(
        group=group,
        name=_name(summary, report),
        result=_result(summary) + was,
        reason=_reason(worst, common) if worst else None,
        delta=token_change(summary, reference),
        tokens=count(summary.tokens),
        tools=count(summary.tools),
        runs=tuple((run.row.run, run.row.cell_id) for run in summary.runs),
    )


def _reason(failure: Failure, common: Cause | None) -> str:
    told_above = failure.outcome == "unusable" and common and _cause_of(failure) == common[:2]
    return ": ".join(filter(None, (failure.kind, None if told_above else failure.reason)))


def _name(summary: Summary, report: Report) -> str:
    parts = [summary.key.unit]
    if summary.kind != "question" or report.several_arms:
        parts.append(summary.key.arm)
    if len(report.subjects) > 1:
        parts.append(summary.key.subject)
    return " · ".join(parts)


def _group(summary: Summary, reference: Reference | None) -> Group:
    if summary.unusable:
        return "unusable"
    if is_worse(summary, reference):
        return "regression"
    return "pass" if summary.resolved == summary.valid else "miss"


def _result(summary: Summary) -> str:
    if len(summary.runs) == 1:
        return summary.runs[0].row.outcome
    unusable = f", {summary.unusable} unusable" if summary.unusable else ""
    return f"{summary.resolved}/{summary.valid}{unusable}"
