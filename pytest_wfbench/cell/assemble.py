"""All that is known of a cell, put together into its row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pytest_wfbench import __version__
from pytest_wfbench.agents.clipping import clip
from pytest_wfbench.agents.stream import UsageClaim
from pytest_wfbench.cell.artifacts import Artifacts
from pytest_wfbench.cell.question import Grade, judgement_of
from pytest_wfbench.cell.review import Review
from pytest_wfbench.cell.sessions import Fault, SessionEnd, skill_fault
from pytest_wfbench.cell.trouble import kind_of
from pytest_wfbench.clock import now, stamp
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.evidence.row import Row, Timings
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.report.escape import one_line
from pytest_wfbench.sandbox.spec import Finished, SandboxName
from pytest_wfbench.scoring.oracle import OracleResult
from pytest_wfbench.sweep.context import BoundAgent, SweepContext
from pytest_wfbench.usage.cell import CellUsage, cell_usage
from pytest_wfbench.workspace.churn import Change
from pytest_wfbench.workspace.overlay import Workspace

REASON = 600
NAME, NAMES = 80, 100
ANSWER = 400_000
CLAIM_BYTES = 64 << 10
FOREIGN = 20_000


@dataclass(frozen=True)
class CellRecord:
    """One cell, over. ``seconds`` is the wall clock of its procedure, ``opening`` that of opening
    its workspace; ``verify`` and ``oracle`` are none if not run. ``trouble`` is what was not the cell's doing;
    ``cut`` says that it came in the middle of a session, whose numbers are then unknown."""

    cell: Cell
    agent: BoundAgent
    sessions: tuple[SessionEnd, ...]
    change: Change | None
    unreadable: str | None
    verify: Finished | None
    oracle: OracleResult | None
    workspace: Workspace
    opening: float
    sandbox: SandboxName
    started_at: datetime
    seconds: float
    artifacts: Artifacts | None
    trouble: tuple[Exception, ...] = ()
    cut: bool = False
    grade: Grade | None = None
    review: Review | None = None
    attempt: int = 1


def build_row(record: CellRecord, sweep: SweepContext) -> Row:
    """Return the row. Unknown is none; nothing in it comes from a file that the agent could write."""
    faults = tuple(cell_faults(record))
    first = faults[0] if faults else None
    events = [event for end in record.sessions for event in end.usage.events]
    usage = cell_usage(events, sum(end.usage.open_calls for end in record.sessions))
    usage = replace(usage, incomplete=usage.incomplete or record.cut)
    return Row(
        **identity(record.cell, sweep),
        attempt=record.attempt,
        outcome=first.outcome if first else "pass",
        kind=first.kind if first else None,
        reason=told("; ".join(fault.reason for fault in faults), REASON, sweep.redactor) if faults else None,
        resolved=not faults if first is None or first.outcome == "miss" else None,
        authored_tests_passed=record.verify.ok if record.verify else None,
        oracle_passed=record.oracle.passed if record.oracle else None,
        **_graded(record, sweep),
        review=record.review.scores.model_dump() if record.review and record.review.scores else None,
        **_metered(record, usage, sweep.redactor),
        cost_usd=None if usage.incomplete else sweep.prices.cell_cost(events),
        price_table=sweep.prices.label,
        **_bound(record, sweep),
        timings=_timings(record),
        started_at=stamp(record.started_at),
        recorded_at=stamp(now()),
        churn=record.change.churn if record.change else None,
        churn_fingerprint=record.change.fingerprint if record.change else None,
        patch_digest=record.artifacts.patch if record.artifacts else None,
        transcript_digest=record.artifacts.transcript if record.artifacts else None,
        host=sweep.host,
        sandbox=record.sandbox,
        workspace_kind=record.workspace.kind,
    )


def cell_faults(record: CellRecord) -> Iterator[Fault]:
    """Yield what is wrong with a cell in the order session, trouble, work, verify, oracle; the first is its kind."""
    yield from (end.fault for end in record.sessions if end.fault)
    yield from (Fault("unusable", kind_of(error), " ".join(str(error).split())) for error in record.trouble)
    if record.change and record.change.skills_changed and skill_fault() not in [end.fault for end in record.sessions]:
        yield skill_fault()
    if record.unreadable:
        yield Fault("miss", "no-work-produced", record.unreadable)
    elif record.change and not record.change.something and not any(end.fault for end in record.sessions):
        yield Fault("miss", "no-work-produced", "the agent changed nothing")
    if record.verify:
        yield from _verify_faults(record.verify)
    if record.oracle and not record.oracle.passed:
        kind = "oracle-timeout" if record.oracle.timed_out else "oracle-failed"
        yield Fault("miss", kind, record.oracle.reason or "the oracle failed")
    if record.grade and record.grade.fault:
        yield record.grade.fault
    if record.review and record.review.fault:
        yield record.review.fault


def _verify_faults(verify: Finished) -> Iterator[Fault]:
    if not verify.started:
        yield Fault("unusable", "infra-error", "the sandbox of verify failed")
    elif verify.limit:
        yield Fault("miss", "verify-failed", f"verify {verify.limit_told}")
    elif verify.timed_out or verify.leftovers:
        reason = (
            "verify left processes behind" if verify.leftovers else f"verify ran longer than {verify.seconds:.0f} s"
        )
        yield Fault("miss", "verify-timeout", reason)
    elif not verify.ok:
        yield Fault("miss", "verify-failed", f"verify exited {verify.status}")


def identity(cell: Cell, sweep: SweepContext) -> dict[str, Any]:
    """Return the fields of a row that say which cell it is of."""
    skills = dict.fromkeys(session.skill for session in cell.arm.sessions if session.skill)
    plugin = sweep.plan.plugin_of(cell.arm)
    return {
        "cell_id": cell.id,
        "task": cell.task.id,
        "task_kind": cell.task.kind,
        "class": cell.task.class_,
        "variation": cell.variation,
        "arm": cell.arm.name,
        "subject": str(cell.subject),
        "agent": cell.subject.agent,
        "run": cell.run,
        "harness_version": __version__,
        "requested_model": cell.subject.model,
        "skills_expected": tuple(sweep.plan.skill_name(cell.arm, skill) for skill in skills),
        "plugin": plugin.binding if plugin else None,
    }


def _graded(record: CellRecord, sweep: SweepContext) -> dict[str, Any]:
    """Return what a question's row says of its answer: whole, unless it is longer than any answer is."""
    if record.cell.task.kind != "question" or not record.sessions:
        return {}
    answer = sweep.redactor.text(record.sessions[-1].transcript.answer.encode("utf-8", "replace").decode())
    judged = record.grade.judged if record.grade else None
    judgement = judgement_of(judged, sweep.plan.judge, sweep.prices) if judged else None
    if judgement and judgement.reason:
        judgement = judgement.model_copy(update={"reason": told(judgement.reason, REASON, sweep.redactor)})
    return {"answer": clip(answer, ANSWER), "judge": judgement}


def _metered(record: CellRecord, usage: CellUsage, redactor: Redactor) -> dict[str, Any]:
    transcripts = [end.transcript for end in record.sessions]
    tools: Counter[str] = Counter()
    for transcript in transcripts:
        tools.update(transcript.tool_calls)
    claims = [event.usage for transcript in transcripts for event in transcript.events if isinstance(event, UsageClaim)]
    return {
        "usage": usage.usage,
        "usage_source": usage.source,
        "usage_incomplete": usage.incomplete,
        "claimed_usage": _claimed(claims, redactor),
        "requests": usage.requests,
        "failed_requests": usage.failed_requests,
        "num_turns": usage.turns,
        "tool_calls": _tool_calls(tools, redactor),
        "models_answered": _names(usage.models_answered, redactor),
        "subagent_share": usage.subagent_share,
    }


def _tool_calls(tools: Counter[str], redactor: Redactor) -> dict[str, int]:
    """Return how often each tool was called. Names are the agent's to choose: redacted, short, and not too many."""
    named: Counter[str] = Counter()
    for name, times in sorted(tools.items()):
        named[told(name, NAME, redactor)] += times
    return dict(sorted(named.most_common(NAMES)))


def told(text: str, limit: int, redactor: Redactor) -> str:
    """Return a foreign text for a row: one line without invisible characters, which could part a secret, cut last."""
    return redactor.text(one_line(text, FOREIGN))[:limit]


def _names(names: Iterable[str] | None, redactor: Redactor) -> tuple[str, ...] | None:
    return None if names is None else tuple(dict.fromkeys(told(name, NAME, redactor) for name in names))[:NAMES]


def _claimed(claims: list[dict[str, Any]], redactor: Redactor) -> dict[str, Any] | None:
    """Return what the agent says it used. A claim too long for a row is as good as none."""
    if not claims or len(json.dumps(claims)) > CLAIM_BYTES:
        return None
    return {"sessions": redactor.value(claims)}


def _bound(record: CellRecord, sweep: SweepContext) -> dict[str, Any]:
    binding, start = sweep.binding(record.cell), record.workspace.start
    return {
        "agent_version": record.agent.runtime.version,
        "effort": sweep.plan.options.effort,
        "agent_options": sweep.plan.agent_options(record.cell.subject.agent) or None,
        "skills_used": _names((n for end in record.sessions for n in end.transcript.skills_used), sweep.redactor),
        "skill_digest": sweep.plan.skill_digest(record.cell),
        "prompt_digest": binding.prompt,
        "task_digest": binding.task,
        "oracle_digest": binding.oracle,
        "oracle_command_digest": binding.oracle_command,
        "oracle_manifest_digest": binding.oracle_manifest,
        "overlay_digest": sweep.plan.overlay_digest if record.cell.arm.overlay else None,
        "dependency_digest": start.template.beside_digest,
        "base_commit": start.template.base_commit,
        "snapshot_commit": start.template.snapshot_commit,
        "start_commit": start.start_commit,
        "head_commit": record.change.head if record.change else None,
    }


def _timings(record: CellRecord) -> Timings:
    whole = sum(end.finished.seconds for end in record.sessions)
    queue = sum(end.usage.stood for end in record.sessions)
    verify = record.verify.seconds if record.verify else None
    oracle = record.oracle.seconds if record.oracle else None
    judge = record.grade.judged.seconds if record.grade and record.grade.judged else None
    overhead = record.seconds + record.opening - whole - (verify or 0.0) - (oracle or 0.0) - (judge or 0.0)
    return Timings(
        queue=round(queue, 4),
        workspace=round(record.opening, 4),
        session=round(max(whole - queue, 0.0), 4),
        verify=_rounded(verify),
        oracle=_rounded(oracle),
        judge=_rounded(judge),
        overhead=round(max(overhead, 0.0), 4),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def failed_row(cell: Cell, sweep: SweepContext, kind: str, reason: str, attempt: int = 1) -> Row:
    """Return the row of a cell that never came to its end: the harness's own fault, or a worker that died."""
    binding = sweep.binding(cell)
    return Row(
        **identity(cell, sweep),
        attempt=attempt,
        outcome="unusable",
        kind=kind,
        reason=told(reason, REASON, sweep.redactor),
        prompt_digest=binding.prompt,
        task_digest=binding.task,
        recorded_at=stamp(now()),
        host=sweep.host,
        sandbox="host" if sweep.plan.options.sandbox == "host" else "bwrap",
    )
