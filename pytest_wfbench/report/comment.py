"""comment.md: the pull-request comment, never larger than its place allows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from pytest_wfbench.evidence.baseline import Baseline
from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.matrix.subject import REPLAY
from pytest_wfbench.report.comment_rows import ORDER, Group, Line, comment_lines, common_cause
from pytest_wfbench.report.escape import cell, one_line
from pytest_wfbench.report.health import UNSANDBOXED
from pytest_wfbench.report.links import SAFE_URL, trace_links
from pytest_wfbench.report.prose import spent_dollars, spent_tokens
from pytest_wfbench.report.summary import Report
from pytest_wfbench.report.versus import comparison, tokens_alike
from pytest_wfbench.report.words import UNKNOWN, plural, seconds, signed

COMMENT_BYTES = 60_000
REASON_LIMIT = 160
CHANGE_LIMIT, CHANGES = 400, 3
MARKER = "pytest-wfbench"
DEFAULT_KEY = "wfbench"
KEY_LIMIT = 100

LOUD = frozenset({"BROKEN", "INCOMPLETE", "BELOW FLOOR"})
GLYPHS: Mapping[Group, str] = MappingProxyType({"unusable": "💥", "regression": "🔻", "miss": "🟡", "pass": "✅"})


def render_comment(report: Report, key: str | None = None, limit: int = COMMENT_BYTES) -> str:
    """Return the comment in at most ``limit`` bytes of UTF-8.

    What does not fit goes in this order: reasons, links to traces, rows that passed, all rows. ``key`` marks the
    comment that is to be updated in place; without it the CI workflow's name does.
    """
    lines = comment_lines(report)
    links = trace_links(report.sweep, lines)
    head = "\n".join((marker(report.sweep, key), headline(report), *_boundary(report), ""))
    for table in LADDER:
        text = "\n".join((head, _one_line(report), *_banner(report), "", *table(lines, links), "", _footer(report), ""))
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
        f"judge {_listed(report.judges, _silent_judge(report))}",
        plural(runs, "run"),
        spent_tokens(report.spent),
        spent_dollars(report.spent),
        f"{seconds(report.spent.wall)} wall",
        _against(report),
    )
    return " · ".join(parts)


def _silent_judge(report: Report) -> str:
    named = report.sweep.options.judge_model
    asked = any(failure.kind == "judge-error" for failure in report.failures)
    return f"{cell(named, 80)} ({'gave no verdict' if asked else 'not asked'})" if named else "none"


def _against(report: Report) -> str:
    """The named baseline, and by how much the tokens of all that can be compared with it changed."""
    if report.baseline is None:
        return "Δ no baseline"
    return f"Δ {signed(tokens_alike(report, comparison(report)))} tokens against {_named(report.baseline)}"


def _named(baseline: Baseline) -> str:
    kind = "" if baseline.name == baseline.kind else f"{baseline.kind} "
    return kind + cell(baseline.name, 80)


def _listed(names: tuple[str, ...], none: str) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(cell(name, 80) for name in names[:3]) + more if names else none


def _banner(report: Report) -> tuple[str, ...]:
    """The one cause, counted, wherever the verdict is bad or anything is unusable."""
    verdict = report.verdict
    common = common_cause(report)
    told = [cell(verdict.cause, 300)] if verdict.cause and verdict.word in LOUD else []
    if common:
        reason = cell(common.reason, REASON_LIMIT)
        said = "" if any(reason in sentence for sentence in told) or not reason else f" — {reason}"
        told.append(f"{common.times} of {common.total} unusable: {cell(common.kind)}{said}")
    return ("", f"> {verdict.glyph if verdict.word in LOUD else GLYPHS['unusable']} {'. '.join(told)}") if told else ()


def _rows(lines: list[Line], *, reasons: bool) -> list[str]:
    rows = ["| question | result | Δ | tokens | tools |", "|---|---|--:|--:|--:|"] if lines else []
    for line in lines:
        told = f" — {cell(line.reason, REASON_LIMIT)}" if reasons and line.reason else ""
        result = f"{GLYPHS[line.group]} {cell(line.result)}{told}"
        rows.append(f"| {cell(line.name, 250)} | {result} | {line.delta} | {line.tokens} | {line.tools} |")
    return rows


def _with_reasons(lines: list[Line], links: Sequence[str]) -> list[str]:
    return [*_rows(lines, reasons=True), *links]


def _without_reasons(lines: list[Line], links: Sequence[str]) -> list[str]:
    return [*_rows(lines, reasons=False), *links]


def _without_links(lines: list[Line], links: Sequence[str]) -> list[str]:
    return _rows(lines, reasons=False)


def _passes_folded(lines: list[Line], links: Sequence[str]) -> list[str]:
    passed = [line for line in lines if line.group == "pass"]
    shown = _rows([line for line in lines if line.group != "pass"], reasons=False)
    return [*shown, "", f"{GLYPHS['pass']} {plural(len(passed), 'row')} passed and not shown."]


def _counted(lines: list[Line], links: Sequence[str]) -> list[str]:
    groups = Counter(line.group for line in lines)
    told = ", ".join(f"{GLYPHS[group]} {groups[group]:,} {group}" for group in ORDER if groups[group])
    return [f"{plural(len(lines), 'row')}, too many to show: {told}."]


LADDER: tuple[Callable[[list[Line], Sequence[str]], list[str]], ...] = (
    _with_reasons,
    _without_reasons,
    _without_links,
    _passes_folded,
    _counted,
)


def _footer(report: Report) -> str:
    url = report.sweep.ci.url if report.sweep.ci else None
    place = f"the artifacts of [its run]({url})" if url and SAFE_URL.match(url) else "the results directory"
    whole = f"The whole report is report.md of sweep {cell(one_line(report.sweep.sweep_id, 60))}, in {place}."
    return f"<sub>{_compared(report)} {whole}</sub>"


def _compared(report: Report) -> str:
    baseline = report.baseline
    if baseline is None:
        none = "No baseline that is filed shares a task with this sweep. " if report.sweep.options.baselines else ""
        return f"{none}Δ: tokens against the same task under the arm's incumbent, else under `baseline`, in this sweep."
    compare = comparison(report)
    shared = sum(compare(summary) is not None for summary in report.summaries)
    commit = f" of {cell(baseline.head, 12)}" if baseline.head else ""
    return (
        f"Δ: tokens against {_named(baseline)}, sweep {cell(baseline.sweep_id, 60)}{commit}, which"
        f" {baseline.passed}/{baseline.graded} passed; {shared} of {plural(len(report.summaries), 'row')} in both."
    )
