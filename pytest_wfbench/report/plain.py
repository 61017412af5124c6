"""The summary as plain JSON, for other tools."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pytest_wfbench.report.savings import Savings
from pytest_wfbench.report.summary import Failure, Report
from pytest_wfbench.report.versus import comparison, is_worse, tokens_alike
from pytest_wfbench.statistics.aggregate import Summary
from pytest_wfbench.statistics.repeats import Repeats
from pytest_wfbench.statistics.uncertain import Bounds

MEDIANS = ("tokens_in", "tokens_cached", "tokens_out", "cost_usd", "wall", "turns", "churn", "tools")


def as_json(report: Report) -> str:
    """Return the report as indented JSON: unknown is null, wall in seconds, cost in USD, savings in percent."""
    return json.dumps(as_plain(report), indent=1, ensure_ascii=False) + "\n"


def as_plain(report: Report) -> dict[str, Any]:
    """Return the report as a JSON value."""
    sweep, verdict = report.sweep, report.verdict
    return {
        "schema_version": 1,
        "sweep_id": sweep.sweep_id,
        "run_status": sweep.run_status,
        "sandbox": sweep.sandbox,
        "started_at": sweep.started_at,
        "ended_at": sweep.ended_at,
        "head": sweep.head,
        "verdict": {**asdict(verdict), "glyph": verdict.glyph, "graded": verdict.counts.graded},
        "subjects": list(report.subjects),
        "models": list(report.models),
        "judges": list(report.judges),
        "baseline": _baseline(report),
        "spent": asdict(report.spent),
        "tasks": [_summary(summary) for summary in report.summaries],
        "savings": [_savings(entry) for entry in report.savings],
        "decisions": [_decision(entry) for entry in report.decisions],
        "repeats": [_repeats(entry) for entry in report.repeats],
        "failures": [_failure(entry) for entry in report.failures],
        "skipped": [asdict(entry) for entry in report.skipped],
        "health": list(report.health),
    }


def _baseline(report: Report) -> dict[str, Any] | None:
    if report.baseline is None:
        return None
    compare = comparison(report)
    pairs = [(summary, compare(summary)) for summary in report.summaries]
    return {
        **report.baseline.model_dump(mode="json", exclude={"entries", "schema_version"}),
        "tokens_percent": tokens_alike(report, compare),
        "shared": sum(reference is not None for _, reference in pairs),
        "worse": [summary.key._asdict() for summary, reference in pairs if is_worse(summary, reference)],
    }


def _summary(summary: Summary) -> dict[str, Any]:
    counts = {
        "runs": len(summary.runs),
        "valid": summary.valid,
        "resolved": summary.resolved,
        "unusable": summary.unusable,
    }
    medians = {name: getattr(summary, name) for name in MEDIANS}
    return {**summary.key._asdict(), "kind": summary.kind, **counts, "medians": medians}


def _failure(entry: Failure) -> dict[str, Any]:
    rest = {"run": entry.run, "outcome": entry.outcome, "kind": entry.kind, "reason": entry.reason}
    return entry.key._asdict() | rest


def _savings(entry: Savings) -> dict[str, Any]:
    names = ("subject", "arm", "against", "tasks", "resolved", "valid", "resolved_against", "valid_against")
    return {**{name: getattr(entry, name) for name in names}, "percents": dict(entry.percents)}


def _repeats(entry: Repeats) -> dict[str, Any]:
    plain = {name.rstrip("_"): value for name, value in entry._asdict().items()}
    names = {"any": "pass_at_k", "all": "pass_hat_k", "any_interval": "pass_at_k_interval"}
    names["all_interval"] = "pass_hat_k_interval"
    return {
        names.get(name, name): value.model_dump() if isinstance(value, Bounds) else value
        for name, value in plain.items()
    }


def _decision(entry: Any) -> dict[str, Any]:
    names = ("candidate_arm", "incumbent_arm", "subject", "decision", "metric")
    lists = ("reasons", "gated_tasks", "ungated_tasks")
    sure = entry.uncertainty.model_dump(mode="json") if entry.uncertainty else None
    plain = {name: getattr(entry, name) for name in names} | {name: list(getattr(entry, name)) for name in lists}
    return plain | {"uncertainty": sure}
