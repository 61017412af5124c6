"""Where a provider's answer holds its usage, its model and its id: whole or streamed, in each wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ANTHROPIC = "anthropic-messages"
RESPONSES = "openai-responses"
CHAT = "openai-chat"
# What stands for a format where no request was seen on the wire, and LiteLLM alone says what there was.
UNSEEN: Final = "litellm"
# More than any event of a provider has, so that a stream without ends is not kept in memory.
EVENT_LIMIT = 64 << 20


@dataclass(frozen=True)
class Reading:
    """What an answer said of itself.

    ``usage`` is the provider's own object, none if there was none. ``finished`` says that the format's last word was
    read, ``started`` that any output was; ``error`` is the provider's message where the answer is one.
    """

    usage: dict[str, Any] | None = None
    model: str | None = None
    response_id: str | None = None
    started: bool = False
    finished: bool = False
    error: str | None = None


@dataclass
class _State:
    usage: dict[str, Any] | None = None
    model: str | None = None
    response_id: str | None = None
    started: bool = False
    finished: bool = False
    error: str | None = None
    output_counted: bool = False

    def identify(self, holder: Mapping[str, Any]) -> None:
        self.model = _text(holder.get("model")) or self.model
        self.response_id = _text(holder.get("id")) or self.response_id

    def merge(self, usage: Any) -> None:
        if isinstance(usage, dict):
            known = {key: value for key, value in usage.items() if value is not None or key not in (self.usage or {})}
            self.usage = {**(self.usage or {}), **known}


Step = Callable[[_State, Mapping[str, Any]], None]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def error_text(document: Any) -> str | None:
    """Return the message of an error answer of any provider, or none if the document is no error."""
    error = _mapping(document).get("error")
    if isinstance(error, dict):
        return str(error.get("message") or error.get("type") or "error")
    return error if isinstance(error, str) else None


def _anthropic_event(state: _State, event: Mapping[str, Any]) -> None:
    match event.get("type"):
        case "message_start":
            message = _mapping(event.get("message"))
            state.identify(message)
            state.merge(message.get("usage"))
        case "content_block_start" | "content_block_delta":
            state.started = True
        case "message_delta":
            usage = _mapping(event.get("usage"))
            state.merge(event.get("usage"))
            state.output_counted = state.output_counted or usage.get("output_tokens") is not None
        case "message_stop":
            state.finished = True
        case "error":
            state.error = error_text(event) or "error"


def _responses_event(state: _State, event: Mapping[str, Any]) -> None:
    kind = str(event.get("type"))
    response = _mapping(event.get("response"))
    state.identify(response)
    state.merge(response.get("usage"))
    state.started = state.started or kind.startswith("response.output")
    state.finished = state.finished or kind in ("response.completed", "response.incomplete", "response.failed")
    if kind in ("response.failed", "error"):
        state.error = error_text(response) or error_text(event) or _text(event.get("message")) or "error"


def _chat_event(state: _State, event: Mapping[str, Any]) -> None:
    state.identify(event)
    state.merge(event.get("usage"))
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        state.started = True
        state.finished = state.finished or _mapping(choice).get("finish_reason") is not None
    state.error = error_text(event) or state.error


EVENT_STEPS: Mapping[str, Step] = {ANTHROPIC: _anthropic_event, RESPONSES: _responses_event, CHAT: _chat_event}


@dataclass
class _Lines:
    """Splits bytes that arrive in any pieces into the ``data:`` of server-sent events; one that is too long is lost."""

    rest: bytearray = field(default_factory=bytearray)
    data: list[bytes] = field(default_factory=list)
    held: int = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            self.rest += head
            lines, self.rest = bytes(self.rest).split(b"\n"), bytearray()
            for line in lines:
                yield from self._line(line.rstrip(b"\r"))
        if len(self.rest) < EVENT_LIMIT:
            self.rest += tail

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line.startswith(b"data:") and self.held < EVENT_LIMIT:
            self.data.append(line[5:].strip())
            self.held += len(line)
        elif not line and self.data:
            yield b"\n".join(self.data)
            self.data, self.held = [], 0


class StreamReader:
    """Reads a streamed answer as its bytes pass; never raises on what it reads."""

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self._step = EVENT_STEPS[wire]
        self._state = _State()
        self._lines = _Lines()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        for data in self._lines.feed(chunk):
            event = _parse(data)
            if isinstance(event, dict):
                self._step(self._state, event)

    def reading(self) -> Reading:
        """Return what has been read so far."""
        state, usage = self._state, self._state.usage
        if usage is not None and self._wire == ANTHROPIC and not state.output_counted:
            # message_start only holds a placeholder for the output.
            usage = {key: value for key, value in usage.items() if key != "output_tokens"}
        return Reading(usage, state.model, state.response_id, state.started, state.finished, state.error)


def stream_events(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the events of a streamed answer that was kept; what is no JSON object is passed over."""
    lines = _Lines()
    for chunk in (data, b"\n\n"):
        for text in lines.feed(chunk):
            event = _parse(text)
            if isinstance(event, dict):
                yield event


def read_object(data: bytes) -> Mapping[str, Any]:
    """Return the JSON object that some bytes are, or an empty one."""
    return _mapping(_parse(data))


def read_whole(data: bytes) -> Reading:
    """Read an answer that was not streamed; an unreadable one is neither started nor finished."""
    document = _parse(data)
    if not isinstance(document, dict):
        return Reading()
    error = error_text(document)
    usage = document.get("usage")
    return Reading(
        usage=usage if isinstance(usage, dict) else None,
        model=_text(document.get("model")),
        response_id=_text(document.get("id")),
        started=error is None,
        finished=error is None,
        error=error,
    )


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
