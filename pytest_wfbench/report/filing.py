"""A sweep's summary as a baseline that later sweeps are compared with."""

from __future__ import annotations

from typing import get_args

from pydantic import ValidationError

from pytest_wfbench.evidence.baseline import Baseline, BaselineKind, Filed
from pytest_wfbench.report.summary import Report
from pytest_wfbench.statistics.aggregate import Summary

VALID = frozenset(get_args(Baseline.model_fields["word"].annotation))


class NotValid(ValueError):
    """A sweep that is no baseline. The message is one line and says why."""


def as_baseline(report: Report, kind: BaselineKind, name: str) -> Baseline:
    """Return the summary that is filed.

    Raises:
        NotValid: for a sweep that is broken or incomplete, graded nothing, or for a name that is none.
    """
    verdict, sweep = report.verdict, report.sweep
    if verdict.word not in VALID:
        raise NotValid(f"sweep {sweep.sweep_id} is {verdict.word} ({verdict.cause}): only a whole, sound one is filed")
    filed = tuple(_filed(summary) for summary in report.summaries if summary.valid)
    if not filed:
        raise NotValid(f"sweep {sweep.sweep_id} graded no cell: nothing could be compared with it")
    try:
        return Baseline(
            kind=kind,
            name=name,
            sweep_id=sweep.sweep_id,
            started_at=sweep.started_at,
            head=sweep.head,
            word=verdict.word,
            passed=verdict.counts.passed,
            graded=verdict.counts.graded,
            harness_version=sweep.versions.harness,
            entries=filed,
        )
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise NotValid(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error


def _filed(summary: Summary) -> Filed:
    key = summary.key
    return Filed(
        task=key.task,
        variation=key.variation,
        arm=key.arm,
        subject=key.subject,
        task_kind=summary.kind,
        task_digest=next(iter(sorted({run.row.task_digest or "" for run in summary.runs})), "") or None,
        runs=len(summary.runs),
        valid=summary.valid,
        resolved=summary.resolved,
        unusable=summary.unusable,
        tokens=summary.tokens,
        cost_usd=summary.cost_usd,
        wall=summary.wall,
        turns=summary.turns,
        tools=summary.tools,
        models=summary.models,
        accounting=summary.accounting,
    )
