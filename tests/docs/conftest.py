"""A provider on this machine, which speaks Anthropic's wire format, and the agent that can be asked here."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pytest_wfbench.gateway.answers.anthropic import AnthropicForm
from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse
from pytest_wfbench.gateway.cassette import Reported

SOLUTION = """echo 'import sys; print("Hello, %s!" % [*sys.argv, "world"][1])' >greet.py"""
ANSWERED = "claude-sonnet-4-5-20250929"
USED = Reported(ordinary_input=11, cache_read_input=7, cache_write_input=5, output=3)
FORM = AnthropicForm()


class _Handler(BaseHTTPRequestHandler):
    """Asks for one command, then is done. Which tool takes a command, the request says."""

    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, dict(self.headers), body))
        answer = _answer(body, len(self.server.seen))
        if body.get("stream"):
            return self._send("text/event-stream", b"".join(FORM.stream(answer, Asked())))
        return self._send("application/json", json.dumps(FORM.whole(answer, Asked())).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _answer(body: dict[str, Any], number: int) -> Answer:
    begun = any(message["role"] == "assistant" for message in body["messages"])
    shell = next((tool["name"] for tool in body.get("tools", ()) if tool["name"].lower() == "bash"), None)
    if begun or shell is None:
        return Answer(str(number), ANSWERED, 1, "It is done.", (), USED, "end_turn")
    call = ToolUse(f"toolu_{number}", shell, {"command": SOLUTION, "description": "Write the program"})
    return Answer(str(number), ANSWERED, 1, "I write it.", (call,), USED, "tool_use")


class Provider(ThreadingHTTPServer):
    """The provider; ``seen`` holds path, headers and body of every request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
