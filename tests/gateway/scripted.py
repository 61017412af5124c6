"""A provider of all three wire formats on this machine, which answers as it is told and keeps its own ledger."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

WIRES = {"/v1/messages": ANTHROPIC, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
DATED = {"claude-sonnet-4-5": "claude-sonnet-4-5-20250929", "gpt-5": "gpt-5-2025-08-07"}
NOTHING = Reported()
PREFIXES = {ANTHROPIC: "toolu_01", CHAT: "call_", RESPONSES: "call_"}


@dataclass(frozen=True)
class Act:
    """What one request gets. ``status`` from 400 on is an error; ``cut`` breaks the answer off before its end."""

    text: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    usage: Reported = NOTHING
    status: int = 200
    retry_after: int | None = None
    cut: bool = False
    pause: float = 0.0


@dataclass(frozen=True)
class Request:
    """A request as it reached the provider: ``number`` counts them from 1."""

    number: int
    wire: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


@dataclass(frozen=True)
class Entry:
    """One line of the provider's ledger."""

    request: Request
    act: Act


@dataclass
class Ledger:
    entries: list[Entry] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))


class Scripted(ThreadingHTTPServer):
    """Asks ``brain`` what each request gets; ``DATED`` models answer by their full names."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, brain: Callable[[Request], Act]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.brain = brain
        self.ledger = Ledger()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def log_message(self, *_: Any) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        if path.endswith("count_tokens"):
            self._send(200, "application/json", b'{"input_tokens": 7}')
            return
        ledger = self.server.ledger
        with ledger.lock:
            request = Request(next(ledger.numbers), WIRES[path], body)
            act = self.server.brain(request)
            ledger.entries.append(Entry(request, act))
        with suppress(OSError):
            self._act(request, act)

    def _act(self, request: Request, act: Act) -> None:
        form = FORMS[request.wire]
        if act.status >= 400:
            self._send(act.status, "application/json", json.dumps(form.error("api_error", act.text)).encode(), act)
            return
        answer, asked = _answer(request, act), Asked(tuple(request.body.get("tools") or ()))
        if not request.body.get("stream"):
            body = json.dumps(form.whole(answer, asked)).encode()
            self._send(200, "application/json", body[: len(body) // 2] if act.cut else body, act, len(body))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in form.stream(answer, asked):
            if act.cut and form.closes(event):
                return
            if act.pause:
                threading.Event().wait(act.pause)
            self.wfile.write(event)

    def _send(self, status: int, kind: str, data: bytes, act: Act | None = None, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(length or len(data)))
        if act and act.retry_after is not None:
            self.send_header("retry-after", str(act.retry_after))
        self.end_headers()
        self.wfile.write(data)
        if act and act.cut:
            self.close_connection = True


def _answer(request: Request, act: Act) -> Answer:
    prefix = PREFIXES[request.wire]
    tools = tuple(
        ToolUse(f"{prefix}{request.number:06x}{place}", name, given) for place, (name, given) in enumerate(act.tools)
    )
    stop = "tool_use" if tools else "end_turn"
    model = DATED.get(request.body["model"], request.body["model"])
    return Answer(f"{request.number:08x}", model, 1, act.text, tools, act.usage, stop)


@contextmanager
def scripted(brain: Callable[[Request], Act]) -> Iterator[Scripted]:
    """Give a provider that ends with the block."""
    with Scripted(brain) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
