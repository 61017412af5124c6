"""An answer before it takes a wire's form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_wfbench.gateway.cassette import Stop
from pytest_wfbench.gateway.reported import Reported

PIECE = 48


@dataclass(frozen=True)
class ToolUse:
    """One tool call of an answer."""

    id: str
    name: str
    input: Mapping[str, Any]
    raw: str | None = None

    @property
    def arguments(self) -> str:
        """The input as JSON text, or what stands in its place."""
        return json.dumps(self.input, ensure_ascii=False) if self.raw is None else self.raw


@dataclass(frozen=True)
class Answer:
    """One answer of a model. ``stop`` is neutral (Anthropic's words); ``created`` in seconds since the epoch."""

    id: str
    model: str
    created: int
    text: str
    tools: tuple[ToolUse, ...]
    usage: Reported
    stop: Stop


@dataclass(frozen=True)
class Asked:
    """What of the request shapes the answer: the tools that were offered, and whether a stream reports usage."""

    tools: tuple[Mapping[str, Any], ...] = ()
    stream_usage: bool = True


class Form(Protocol):
    """One wire format."""

    tool_prefix: str

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        """Return the answer's body."""
        ...

    def stream(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        """Yield the answer's events. The last output precedes the first event that closes the answer."""
        ...

    def closes(self, event: bytes) -> bool:
        """Whether an event belongs to the end of the answer, which a cut stream does not reach."""
        ...

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """Return an error's body."""
        ...


def pieces(text: str) -> Iterator[str]:
    """Yield a text as a stream would bring it."""
    yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def compact(value: Any) -> bytes:
    """Return a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def event(payload: Mapping[str, Any], named: bool = True) -> bytes:
    """Return a server-sent event, named after its ``type``."""
    head = f"event: {payload['type']}\n".encode() if named else b""
    return head + b"data: " + compact(payload) + b"\n\n"


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that are known."""
    return {key: value for key, value in values.items() if value is not None}
