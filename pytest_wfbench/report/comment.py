"""comment.md: the pull-request comment, never larger than its place allows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.matrix.subject import REPLAY
from pytest_wfbench.report.escape import cell, one_line
from pytest_wfbench.report.health import UNSANDBOXED
from pytest_wfbench.report.prose import spent_dollars, spent_tokens
from pytest_wfbench.report.savings import references
from pytest_wfbench.report.summary import Failure, Report
from pytest_wfbench.report.words import UNKNOWN, count, plural, seconds, signed
from pytest_wfbench.statistics.aggregate import Key, Summary
from pytest_wfbench.statistics.paired import improvement

COMMENT_BYTES = 60_000
REASON_LIMIT = 160
CHANGE_LIMIT, CHANGES = 400, 3
MARKER = "pytest-wfbench"
DEFAULT_KEY = "wfbench"
KEY_LIMIT = 100
URL = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,300}\Z")

Group = Literal["unusable", "regression", "miss", "pass"]
LOUD = frozenset({"BROKEN", "INCOMPLETE", "BELOW FLOOR"})
ORDER: tuple[Group, ...] = ("unusable", "regression", "miss", "pass")
GLYPHS: dict[Group, str] = {"unusable": "💥", "regression": "🔻", "miss": "🟡", "pass": "✅"}


@dataclass(frozen=True)
class Line:
    """One row of the table, unescaped. ``order`` sorts rows of a group as tasks and arms are sorted."""

    group: Group
    name: str
    result: str
    reason: str | None
    delta: str
    tokens: str
    tools: str


def render_comment(report: Report, key: str | None = None, limit: int = COMMENT_BYTES) -> str:
    """Return the comment in at most ``limit`` bytes of UTF-8.

    What does not fit goes in this order: reasons, rows that passed, all rows. ``key`` marks the comment that is to be
    updated in place; without it the CI workflow's name does.
    """
    lines = comment_lines(report)
    head = "\n".join((marker(report.sweep, key), headline(report), *_boundary(report), ""))
    for table in LADDER:
        text = "\n".join((head, _one_line(report), *_banner(report), "", *table(lines), "", _footer(report), ""))
        if len(text.encode()) <= limit:
            return text
    return head


def marker(sweep: Sweep, key: str | None = None) -> str:
    """Return the first line: whose comment it is, and which of two is the newer."""
    name = key or (sweep.ci.workflow if sweep.ci else None) or DEFAULT_KEY
    # A key never ends the HTML comment it stands in.
    safe = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_./-]", "-", name))[:KEY_LIMIT].strip("-") or DEFAULT_KEY
    return f"<!-- {MARKER} key={safe} order={_order(sweep)} -->"


def _order(sweep: Sweep) -> int:
    if sweep.ci and sweep.ci.order is not None:
        return sweep.ci.order
    try:
        started = datetime.fromisoformat(sweep.started_at)
    except ValueError:
        return 0
    return int((started if started.tzinfo else started.replace(tzinfo=UTC)).timestamp())


def headline(report: Report) -> str:
    """Return the second line: the verdict, and passes of graded cells."""
    verdict, head = report.verdict, report.sweep.head
    sha = f" · {cell(head, 12)}" if head else ""
    rate = f"{verdict.counts.passed}/{verdict.counts.graded}"
    return f"### {verdict.word} {verdict.glyph} Smoke eval — {rate} pass{sha}"


def _boundary(report: Report) -> tuple[str, ...]:
    """What must be said however little room there is."""
    unsandboxed = [UNSANDBOXED] if report.sweep.sandbox == "host" else []
    told = [*unsandboxed, *(cell(sentence, CHANGE_LIMIT) for sentence in report.model_changes[:CHANGES])]
    return tuple(line for sentence in told for line in ("", f"> ⚠️ {sentence}"))


def _scripted(report: Report) -> str:
    replayed = [(info.model or "").startswith(REPLAY) for info in report.sweep.subjects]
    return " (replayed from cassettes, not billed)" if replayed and all(replayed) else ""


def _one_line(report: Report) -> str:
    runs = max((len(summary.runs) for summary in report.summaries), default=0)
    parts = (
        _listed(report.subjects, "no subject"),
        f"answered by {_listed(report.models, UNKNOWN)}{_scripted(report)}",
        f"judge {_listed(report.judges, 'none')}",
        plural(runs, "run"),
        spent_tokens(report.spent),
        spent_dollars(report.spent),
        f"{seconds(report.spent.wall)} wall",
        "Δ no baseline",
    )
    return " · ".join(parts)


def _listed(names: tuple[str, ...], none: str) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(cell(name, 80) for name in names[:3]) + more if names else none


def _banner(report: Report) -> tuple[str, ...]:
    """The one cause, counted, wherever the verdict is bad or anything is unusable."""
    verdict = report.verdict
    causes = Counter((f.kind or "unknown", f.reason or "") for f in report.failures if f.outcome == "unusable")
    told = [cell(verdict.cause, 300)] if verdict.cause and verdict.word in LOUD else []
    if causes:
        (kind, reason), times = min(causes.items(), key=lambda entry: (-entry[1], entry[0]))
        said = f" — {cell(reason, REASON_LIMIT)}" if reason else ""
        told.append(f"{times} of {causes.total()} unusable: {cell(kind)}{said}")
    return ("", f"> {verdict.glyph if verdict.word in LOUD else GLYPHS['unusable']} {'. '.join(told)}") if told else ()


def comment_lines(report: Report) -> list[Line]:
    """Return the table's rows in the order they are shown: unusable, regressions, misses, passes."""
    told: dict[Key, list[Failure]] = defaultdict(list)
    for failure in report.failures:
        told[failure.key].append(failure)
    peers = {summary.key: summary for summary in report.summaries}
    lines = [
        _line(summary, _reference(summary, peers, report.sweep), told[key], report) for key, summary in peers.items()
    ]
    gone = [
        Line("unusable", f"shard {name}", "never reported", None, *[UNKNOWN] * 3)
        for name in report.sweep.missing_shards
    ]
    return sorted(gone + lines, key=lambda line: ORDER.index(line.group))


def _line(summary: Summary, reference: Summary | None, failures: list[Failure], report: Report) -> Line:
    worst = min(failures, key=lambda failure: (failure.outcome != "unusable", failure.run), default=None)
    return Line(
        group=_group(summary, reference),
        name=_name(summary, report),
        result=_result(summary),
        reason=": ".join(filter(None, (worst.kind, worst.reason))) if worst else None,
        delta=_delta(summary, reference),
        tokens=count(summary.tokens),
        tools=count(summary.tools),
    )


def _name(summary: Summary, report: Report) -> str:
    parts = [summary.key.unit]
    if summary.kind != "question" or report.several_arms:
        parts.append(summary.key.arm)
    if len(report.subjects) > 1:
        parts.append(summary.key.subject)
    return " · ".join(parts)


def _reference(summary: Summary, peers: Mapping[Key, Summary], sweep: Sweep) -> Summary | None:
    """The same task under the arm's incumbent, else under the baseline."""
    key = summary.key
    rivals = [peers.get(key._replace(arm=name)) for name in references(key.arm, sweep)]
    return next((rival for rival in rivals if rival), None)


def _group(summary: Summary, reference: Summary | None) -> Group:
    if summary.unusable:
        return "unusable"
    if reference and reference.valid and summary.resolved * reference.valid < reference.resolved * summary.valid:
        return "regression"
    return "pass" if summary.resolved == summary.valid else "miss"


def _result(summary: Summary) -> str:
    if len(summary.runs) == 1:
        return summary.runs[0].row.outcome
    unusable = f", {summary.unusable} unusable" if summary.unusable else ""
    return f"{summary.resolved}/{summary.valid}{unusable}"


def _delta(summary: Summary, reference: Summary | None) -> str:
    """Tokens against the reference, where the same model answered both and both are metered."""
    if reference is None or not summary.models or summary.models != reference.models:
        return UNKNOWN
    saved = improvement(reference.tokens, summary.tokens)
    return signed(None if saved is None else -saved)


def _rows(lines: list[Line], *, reasons: bool) -> list[str]:
    rows = ["| question | result | Δ | tokens | tools |", "|---|---|--:|--:|--:|"] if lines else []
    for line in lines:
        told = f" — {cell(line.reason, REASON_LIMIT)}" if reasons and line.reason else ""
        result = f"{GLYPHS[line.group]} {cell(line.result)}{told}"
        rows.append(f"| {cell(line.name, 250)} | {result} | {line.delta} | {line.tokens} | {line.tools} |")
    return rows


def _with_reasons(lines: list[Line]) -> list[str]:
    return _rows(lines, reasons=True)


def _without_reasons(lines: list[Line]) -> list[str]:
    return _rows(lines, reasons=False)


def _passes_folded(lines: list[Line]) -> list[str]:
    passed = [line for line in lines if line.group == "pass"]
    shown = _rows([line for line in lines if line.group != "pass"], reasons=False)
    return [*shown, "", f"{GLYPHS['pass']} {plural(len(passed), 'row')} passed and not shown."]


def _counted(lines: list[Line]) -> list[str]:
    groups = Counter(line.group for line in lines)
    told = ", ".join(f"{GLYPHS[group]} {groups[group]:,} {group}" for group in ORDER if groups[group])
    return [f"{plural(len(lines), 'row')}, too many to show: {told}."]


LADDER: tuple[Callable[[list[Line]], list[str]], ...] = (_with_reasons, _without_reasons, _passes_folded, _counted)


def _footer(report: Report) -> str:
    url = report.sweep.ci.url if report.sweep.ci else None
    place = f"the artifacts of [its run]({url})" if url and URL.match(url) else "the results directory"
    return (
        "<sub>Δ: tokens against the same task under the arm's incumbent, else under `baseline`, in this sweep."
        f" The whole report is report.md of sweep {cell(one_line(report.sweep.sweep_id, 60))}, in {place}.</sub>"
    )
