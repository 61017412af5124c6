"""The usage of a cell: the sum over the requests that passed its sockets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.usage.normalise import normalise
from pytest_wfbench.wires import CHAT, RESPONSES

SIDE_SESSIONS = frozenset({"judge", "preflight"})
# What must be known of a request for nothing billed to be missing. Where OpenAI's formats say nothing of written cache,
# none is billed, and what is ordinary is not told apart from it.
BILLED = ("ordinary_input", "cache_read_input", "cache_write_input", "total_input", "output")
BILLED_BY_WIRE = dict.fromkeys((CHAT, RESPONSES), ("total_input", "cache_read_input", "output"))


@dataclass(frozen=True)
class CellUsage:
    """Tokens of a cell and what stands beside them in its row.

    ``incomplete`` means unknown to cost, medians and gate. ``requests`` counts upstream requests (token counts aside),
    ``failed_requests`` those that failed or were cut, ``turns`` completed answers of the arm's own conversations.
    """

    usage: Usage
    incomplete: bool
    requests: int
    failed_requests: int
    models_answered: tuple[str, ...]
    source: Literal["wire", "litellm"] | None
    turns: int
    subagent_share: float | None


def adds_nothing(request: Event) -> bool:
    """Whether a request failed before any output: it used nothing, whatever it asked for."""
    return request.status == "failure" and request.ttft_ms is None and request.native_usage is None


def request_usage(request: Event) -> Usage:
    """Return the tokens of one request. Raises UsageError, which names it."""
    if adds_nothing(request):
        return Usage(**dict.fromkeys(Usage.model_fields, 0))
    return normalise(request.wire, request.native_usage, request.call_id)


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def sum_usage(parts: Sequence[Usage]) -> Usage:
    """Add field by field; a field that is unknown anywhere is unknown. Nothing at all is 0."""
    return Usage(**{name: _sum(getattr(part, name) for part in parts) for name in Usage.model_fields})


def _lacks(request: Event, part: Usage) -> bool:
    return any(getattr(part, name) is None for name in BILLED_BY_WIRE.get(request.wire, BILLED))


def _share(requests: Sequence[Event], parts: Sequence[Usage]) -> float | None:
    tokens = [_sum((part.total_input, part.output)) for part in parts]
    whole = _sum(tokens)
    side = _sum(count for request, count in zip(requests, tokens, strict=True) if request.conversation == "subagent")
    return side / whole if whole and side is not None else None


def _is_turn(request: Event) -> bool:
    return request.status == "success" and request.session not in SIDE_SESSIONS and request.conversation != "title"


def cell_usage(events: Iterable[Event], open_calls: int = 0) -> CellUsage:
    """Sum a cell's events. ``open_calls`` counts requests that never ended.

    Raises:
        UsageError: for an event whose usage contradicts itself; it names the event.
    """
    requests = [event for event in events if event.kind == "generate"]
    parts = [request_usage(request) for request in requests]
    usage = sum_usage(parts)
    gaps = any(_lacks(request, part) for request, part in zip(requests, parts, strict=True))
    sources = {request.usage_source for request in requests}
    return CellUsage(
        usage=usage,
        incomplete=gaps or open_calls > 0,
        requests=len(requests),
        failed_requests=sum(request.status in ("failure", "cut") for request in requests),
        models_answered=tuple(dict.fromkeys(r.answered_model for r in requests if r.answered_model)),
        source="litellm" if "litellm" in sources else "wire" if sources else None,
        turns=sum(map(_is_turn, requests)),
        subagent_share=_share(requests, parts),
    )
