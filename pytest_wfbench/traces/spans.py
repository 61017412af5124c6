"""What a finished sweep did, as spans: one trace a cell, with its sessions, model calls and tool calls.

Names and attributes are those of OpenTelemetry's conventions for generative AI; ``wfbench.*`` are our own. What was
said is not among them: no prompt, no answer, no argument and no output of a tool.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pytest_wfbench.digests import trace_id
from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import read_rows, read_sweep
from pytest_wfbench.evidence.usage_log import read_events
from pytest_wfbench.traces.tools import Step, read_steps, tool_times
from pytest_wfbench.usage.cell import request_usage
from pytest_wfbench.usage.normalise import UsageError

Value = str | int | float | bool | tuple[str, ...]
Status = Literal["unset", "ok", "error"]
Kind = Literal["internal", "client"]
REASON = 300
# The requests of one attempt carry no number of it; those of judges and preflights are the harness's.
HARNESS = frozenset({"judge", "preflight"})
PROVIDERS: Mapping[str, str] = {"bedrock": "aws.bedrock", "azure": "azure.ai.openai", "gemini": "gcp.gemini",
                                "vertex_ai": "gcp.vertex_ai", "mistral": "mistral_ai", "xai": "x_ai"}  # fmt: skip


@dataclass(frozen=True)
class Span:
    """One span: ids in hexadecimal digits (32 of the trace, 16 of a span), times in nanoseconds since 1970."""

    trace: str
    id: str
    parent: str | None
    name: str
    start: int
    end: int
    kind: Kind = "internal"
    status: Status = "unset"
    message: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class CellTrace:
    """The spans of one cell, the root first."""

    cell_id: str
    spans: tuple[Span, ...]


def cell_traces(directory: Path) -> Iterator[CellTrace]:
    """Yield the trace of each cell of a results directory, in the order of cells.

    Raises:
        EvidenceError: when the directory cannot be read.
    """
    sweep, rows = read_sweep(directory), read_rows(directory)
    events: dict[str, list[Event]] = defaultdict(list)
    for event in read_events(directory).events:
        if event.kind == "generate":
            events[event.cell_id].append(event)
    for run in rows.runs:
        cell = run.row.cell_id
        steps = read_steps(directory, cell, run.row.attempt)
        yield CellTrace(cell, tuple(_spans(sweep, run.attempts, events[cell], steps)))


def _spans(sweep: Sweep, attempts: Sequence[Row], events: Sequence[Event], steps: Sequence[Step]) -> Iterator[Span]:
    row, trace = attempts[-1], trace_id(sweep.sweep_id, attempts[-1].cell_id)
    timed = [(event, *_times(event)) for event in events]
    end = max(_nanoseconds(row.recorded_at), 0, *(ended for _, _, ended in timed))
    known = filter(None, (_nanoseconds(attempts[0].started_at), *(begun for _, begun, _ in timed)))
    start = min(known, default=end)
    end = max(start, end)
    root = _root(trace, row, start, end, sweep.sweep_id)
    yield root
    arm = sweep.arm(row.arm)
    # An agent without model and events has nothing but the word of the arm that it ran.
    ran = arm.sessions if arm and row.outcome in ("pass", "miss") else ()
    told = [*(session.name for session in ran), *(step.session for step in steps), *(e.session for e in events)]
    for name in dict.fromkeys(told):
        calls = sorted((entry for entry in timed if entry[0].session == name), key=lambda entry: entry[1:])
        inside = [step for step in steps if step.session == name]
        yield from _session(root, row, name, calls, inside)


_Timed = tuple[Event, int, int]


def _root(trace: str, row: Row, start: int, end: int, sweep_id: str) -> Span:
    reason = Redactor().text(row.reason or "")[:REASON]
    status: Status = {"pass": "ok", "unusable": "error"}.get(row.outcome, "unset")  # type: ignore[assignment]
    told: dict[str, Value | None] = {
        "wfbench.sweep.id": sweep_id, "wfbench.cell.id": row.cell_id, "wfbench.task": row.task,
        "wfbench.variation": row.variation, "wfbench.arm": row.arm, "wfbench.subject": row.subject,
        "wfbench.run": row.run, "wfbench.attempt": row.attempt, "wfbench.outcome": row.outcome,
        "wfbench.outcome.kind": row.kind, "wfbench.outcome.reason": reason or None, "wfbench.cost.usd": row.cost_usd,
        "wfbench.usage.input_tokens": row.usage.total_input, "wfbench.usage.output_tokens": row.usage.output,
        "wfbench.usage.complete": not row.usage_incomplete,
    }  # fmt: skip
    name = f"cell {row.task} {row.arm}"
    message = reason if status == "error" else ""
    return Span(trace, _id(trace, "cell"), None, name, start, end, "internal", status, message, _known(told))


def _session(root: Span, row: Row, name: str, calls: Sequence[_Timed], steps: Sequence[Step]) -> Iterator[Span]:
    start = min((begun for _, begun, _ in calls), default=root.start)
    end = max((ended for _, _, ended in calls), default=root.end)
    own = name in HARNESS
    told: dict[str, Value | None] = {
        "gen_ai.operation.name": None if own else "invoke_agent", "gen_ai.agent.name": None if own else row.agent,
        "gen_ai.agent.version": None if own else row.agent_version, "gen_ai.conversation.id": f"{row.cell_id}/{name}",
        "gen_ai.request.model": row.requested_model, "wfbench.session": name,
    }  # fmt: skip
    shown = name if own else f"invoke_agent {row.agent}"
    span = Span(root.trace, _id(root.trace, "session", name), root.id, shown, start, end, attributes=_known(told))
    yield span
    yield from (_call(span, *call) for call in calls)
    answered = [(begun, ended) for event, begun, ended in calls if event.conversation == "main"]
    for number, (step, begun, ended) in enumerate(tool_times(steps, answered, (start, end))):
        yield _tool(span, number, step, begun, ended)


def _call(session: Span, event: Event, start: int, end: int) -> Span:
    told: dict[str, Value | None] = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": _provider(event),
        "gen_ai.request.model": event.requested_model, "gen_ai.response.model": event.answered_model,
        "gen_ai.response.id": event.response_id, "gen_ai.request.max_tokens": event.max_output,
        "gen_ai.conversation.id": f"{event.cell_id}/{event.session}", "http.response.status_code": event.http_status,
        "wfbench.conversation": event.conversation, "wfbench.call.id": event.call_id,
        "wfbench.ttft_ms": event.ttft_ms, **_tokens(event),
    }  # fmt: skip
    failed = event.status != "success"
    error = event.error_class or event.status if failed else None
    message = Redactor().text(event.error_message or "")[:REASON] if failed else ""
    name = f"chat {event.requested_model or event.answered_model or 'model'}"
    status: Status = "error" if failed else "unset"
    told["error.type"] = error
    identity = _id(session.trace, "call", event.call_id, str(event.attempt))
    return Span(session.trace, identity, session.id, name, start, end, "client", status, message, _known(told))


def _tokens(event: Event) -> dict[str, Value | None]:
    try:
        used = request_usage(event)
    except UsageError:
        return {}
    return {
        "gen_ai.usage.input_tokens": used.total_input,
        "gen_ai.usage.output_tokens": used.output,
        "gen_ai.usage.cache_read.input_tokens": used.cache_read_input,
        "gen_ai.usage.cache_creation.input_tokens": used.cache_write_input,
    }


def _tool(session: Span, number: int, step: Step, start: int, end: int) -> Span:
    told: dict[str, Value | None] = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": step.name, "gen_ai.tool.call.id": step.id,
        "gen_ai.tool.type": "function", "error.type": "tool_error" if step.error else None,
        # Agents do not say when; it lay between two answers of the model.
        "wfbench.time.derived": True,
    }  # fmt: skip
    identity = _id(session.trace, "tool", session.id, str(number))
    status: Status = "error" if step.error else "unset"
    name = f"execute_tool {step.name}"
    return Span(session.trace, identity, session.id, name, start, end, "internal", status, "", _known(told))


def _provider(event: Event) -> str | None:
    return PROVIDERS.get(event.provider, event.provider) if event.provider else None


def _known(told: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in told.items() if value is not None}


def _id(*parts: str) -> str:
    text = "\n".join(("wfbench span", *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _times(event: Event) -> tuple[int, int]:
    """The start and the end; an end before the start, which a clock leaves that was set back, is the start."""
    start = _nanoseconds(event.started_at)
    return start, max(start, _nanoseconds(event.completed_at))


def _nanoseconds(text: str | None) -> int:
    """Return a time as nanoseconds since 1970, or 0 where it does not read."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return 0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, round(aware.timestamp() * 1000) * 1_000_000)


def all_spans(traces: Iterable[CellTrace]) -> Iterator[Span]:
    """Yield the spans of all traces."""
    for trace in traces:
        yield from trace.spans
