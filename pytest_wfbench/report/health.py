"""How sound the evidence is, in sentences. No sentence means that nothing was found wanting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Row, Usage
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.matrix.subject import REPLAY
from pytest_wfbench.report.integrity import boundaries, contamination, oracles, transcripts
from pytest_wfbench.report.judging import doubts, votes
from pytest_wfbench.report.words import dollars, plural, seconds

UNSANDBOXED = "There was no sandbox: agents could see and change the host. These rows are not promotable."


def health(rows: Rows, sweep: Sweep) -> tuple[str, ...]:
    """Return what a reader should know about the evidence, worst first."""
    return tuple(sentence for check in CHECKS for sentence in check(rows, sweep))


def _whole(rows: Rows, sweep: Sweep) -> Iterator[str]:
    if rows.torn:
        yield f"A row is torn: {rows.torn}."
    if rows.duplicates:
        yield f"{plural(len(rows.duplicates), 'attempt')} recorded twice: {', '.join(rows.duplicates[:3])}."
    planned = {cell.cell_id for cell in sweep.planned}
    if strangers := sorted({row.cell_id for row in rows.rows} - planned):
        yield f"{plural(len(strangers), 'cell')} nobody planned: {', '.join(strangers[:3])}."
    if sweep.open_calls:
        yield f"{plural(len(sweep.open_calls), 'upstream request')} never ended; what they used is unknown."


def _budgeted(rows: Rows, sweep: Sweep) -> Iterator[str]:
    spending = sweep.spending
    if spending is None:
        return
    if spending.max_cost is not None:
        over = spending.overshoot or 0.0
        beyond = f", {dollars(over)} beyond it by requests that were under way" if over else ""
        yield f"{dollars(spending.charged)} charged to the sweep's budget of {dollars(spending.max_cost)}{beyond}."
    if spending.assumed:
        yield f"{dollars(spending.assumed)} of what the budget was charged is assumed: those requests told no usage."
    if own := sum(row.kind == "budget-exceeded" for row in rows.rows):
        yield f"{plural(own, 'attempt')} ended by the cell's budget of {dollars(spending.cell_max_cost)}."


def _waited(rows: Rows, sweep: Sweep) -> Iterator[str]:
    traffic = sweep.traffic
    for pause in traffic.pauses if traffic else ():
        yield f"{pause.model} was paused for {seconds(pause.seconds)}: the provider said {pause.times} times to wait."
    if traffic and round(traffic.waited, 1):
        yield f"Sessions waited {seconds(traffic.waited)} in all at the gateway, which their times do not count."


def _sandboxed(rows: Rows, sweep: Sweep) -> Iterator[str]:
    if sweep.sandbox == "host":
        yield UNSANDBOXED


def _tested(rows: Rows, sweep: Sweep) -> Iterator[str]:
    for version, tested in sorted({(s.agent_version or "", s.tested) for s in sweep.subjects if s.tested}):
        yield f"{version} is not a release that the harness is tested with; that is {tested}."


def _scripted(rows: Rows, sweep: Sweep) -> Iterator[str]:
    for subject in sweep.subjects:
        if (subject.model or "").startswith(REPLAY):
            yield f"{subject.subject} was answered by cassettes: tokens and dollars are the script's, not a bill."


def _metered(rows: Rows, sweep: Sweep) -> Iterator[str]:
    total = len(rows.rows)
    if unmetered := sum(row.usage_incomplete for row in rows.rows):
        yield f"{unmetered} of {plural(total, 'attempt')} have incomplete usage: their tokens and cost are unknown."
    if unpriced := [row for row in rows.rows if row.cost_usd is None and not row.usage_incomplete]:
        models = ", ".join(sorted({model for row in unpriced for model in row.models_answered or ()})) or "their model"
        lacking = f"the price table lacks {models}, or one of its prices"
        yield f"{len(unpriced)} of {plural(total, 'attempt')} have no price: {lacking}."
    if differing := sum(_claims_differ(row) for row in rows.rows):
        yield f"{plural(differing, 'attempt')} where the agent's own account differs from what the gateway counted."
    if failed := sum(row.failed_requests or 0 for row in rows.rows):
        yield f"{plural(failed, 'upstream request')} failed."


def _uniform(rows: Rows, sweep: Sweep) -> Iterator[str]:
    tables = sorted({row.price_table for row in rows.rows if row.price_table})
    if len(tables) > 1:
        yield f"Costs come from {len(tables)} price tables: {', '.join(tables)}."
    yield from model_changes(rows.rows)


def model_changes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each subject that more than one model answered: it asked for one."""
    for subject in sorted({row.subject for row in rows}):
        models = sorted({model for row in rows if row.subject == subject for model in row.models_answered or ()})
        if len(models) > 1:
            told = f"{subject} was answered by {len(models)} models: {', '.join(models)}"
            yield f"{told}. It asked for one: what its cells show is not of one model."


def _spared(rows: Rows, sweep: Sweep) -> Iterator[str]:
    if reused := sum(row.reused_from is not None for row in rows.rows):
        yield f"{plural(reused, 'row')} reused from an earlier sweep."
    if again := sum(row.attempt > 1 for row in rows.rows):
        yield f"{plural(again, 'further attempt')} recorded and paid for."


CHECKS: tuple[Callable[[Rows, Sweep], Iterator[str]], ...] = (
    _whole,
    _sandboxed,
    boundaries,
    contamination,
    oracles,
    transcripts,
    _tested,
    doubts,
    _scripted,
    _metered,
    _budgeted,
    _waited,
    _uniform,
    _spared,
    votes,
)


def _claims_differ(row: Row) -> bool:
    claimed = row.claimed_usage or {}
    known = row.usage.model_dump()
    return any(name in claimed and None not in (claimed[name], known[name]) and claimed[name] != known[name]
               for name in Usage.model_fields)  # fmt: skip
