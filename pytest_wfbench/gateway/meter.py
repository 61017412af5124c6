"""One request to the provider, from its start to the event that records it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import from_json

from pytest_wfbench.gateway.api import Event, EventStatus, Wire
from pytest_wfbench.gateway.calls import Call
from pytest_wfbench.gateway.events import timestamp
from pytest_wfbench.wires import Reading, StreamReader, read_whole

MESSAGE_CLIP = 500
# Of a message, which may repeat the request, before it is redacted and cut.
MESSAGE_READ = 20_000
# An answer that is not streamed is kept until it is whole, to be read: more than this of it is not.
WHOLE_LIMIT = 64 << 20

Redact = Callable[[str], str]


@dataclass
class Meter:
    """Watches the bytes of one answer. ``attempt`` counts the requests of a call from 1."""

    call: Call
    wire: Wire
    attempt: int
    redact: Redact
    kind: Literal["generate", "count"] = "generate"
    status: int | None = None
    ttft_ms: float | None = None
    started_at: str = field(default_factory=timestamp)
    _started: float = field(default_factory=time.monotonic)
    _stream: StreamReader | None = None
    _whole: bytearray = field(default_factory=bytearray)

    def begin(self, status: int, streamed: bool) -> None:
        """The head of the answer is here."""
        self.status = status
        self._stream = StreamReader(self.wire) if streamed else None

    def feed(self, chunk: bytes) -> None:
        """Some of its bytes are here."""
        if self.ttft_ms is None and self.status is not None and self.status < 300:
            self.ttft_ms = round((time.monotonic() - self._started) * 1000, 3)
        if self._stream is not None:
            self._stream.feed(chunk)
        elif len(self._whole) < WHOLE_LIMIT:
            self._whole += chunk

    def reading(self) -> Reading:
        """Return what the answer said of itself so far."""
        return self._stream.reading() if self._stream is not None else read_whole(bytes(self._whole))

    def event(self, *, cut: bool = False, gone: bool = False, error: str | None = None) -> Event:
        """Return the record. ``cut``: the answer broke off; ``gone``: the client left first; ``error``: why."""
        reading = self.reading()
        status, message = self._outcome(reading, cut, gone), error or reading.error
        session = self.call.session
        return Event(
            kind=self.kind,
            conversation=self.call.conversation,
            sweep_id=session.sweep_id,
            cell_id=session.request.cell_id,
            session=session.request.labels.session,
            call_id=self.call.id,
            attempt=self.attempt,
            status=status,
            requested_model=self.call.requested_model,
            answered_model=_writable(reading.model),
            provider=self.call.target.provider,
            wire=self.wire,
            response_id=_writable(reading.response_id),
            started_at=self.started_at,
            completed_at=timestamp(),
            ttft_ms=self.ttft_ms,
            http_status=self.status,
            error_class=None if status == "success" else self._error_class(status),
            error_message=_writable(self.redact(message[:MESSAGE_READ])[:MESSAGE_CLIP]) if message else None,
            claims=self.call.claims,
            native_usage=_readable(reading.usage),
            max_output=self.call.max_output,
            body_bytes=self.call.body_bytes,
        )

    def _outcome(self, reading: Reading, cut: bool, gone: bool) -> EventStatus:
        if self.status is None or self.status >= 300 or reading.error is not None:
            return "failure"
        if gone:
            return "cancelled"
        return "cut" if cut or not reading.finished else "success"

    def _error_class(self, status: EventStatus) -> str:
        if status != "failure":
            return status
        return "connection" if self.status is None else f"http-{self.status}"


def _writable(text: str | None) -> str | None:
    """Return a text without the lone surrogates that JSON can hold and no file."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _readable(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a provider's numbers if they can be read back as they stand in an event: else they are unknown."""
    try:
        from_json(json.dumps({"native_usage": usage}))
    except (ValueError, RecursionError):
        return None
    return usage
