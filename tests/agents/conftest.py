"""A scripted provider on this machine's loopback, and a way to run an agent against it as its sandbox would."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, cast

import pytest

from pytest_wfbench.agents.base import Agent, Invocation, SessionInput
from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.gateway.answers.base import Answer, Asked, Form, ToolUse
from pytest_wfbench.gateway.answers.chat import ChatForm
from pytest_wfbench.gateway.answers.responses import ResponsesForm
from pytest_wfbench.gateway.conversation import read_conversation, tool_id
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.sandbox.identity import choose_identity
from pytest_wfbench.sandbox.layout import lay_out
from pytest_wfbench.sandbox.spec import Command
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES
from tests.e2e.conftest import require_agent

NOBODY = 64999
MODEL = "replay/demo"
Fields = dict[str, Any]
KEY = "session-key-of-the-test"
WIRES = {"/v1/messages": ANTHROPIC, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
FORMS: dict[str, Form] = {CHAT: ChatForm(), RESPONSES: ResponsesForm()}
USAGE = Reported(ordinary_input=8, cache_read_input=2, cache_write_input=0, output=3)


@dataclass
class Turn:
    """What the provider answers; ``errors`` are statuses that it answers before."""

    text: str = ""
    tools: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    raw: bytes | None = None
    finish: str | None = None
    hang: bool = False
    cut: bool = False


class Upstream(ThreadingHTTPServer):
    """The turn is chosen by the number of assistant messages in the request, as cassettes do.

    A conversation whose first message holds ``SIDE`` is a subagent's, and takes its turns from ``side``.
    """

    daemon_threads = True

    def __init__(self, turns: list[Turn], side: list[Turn], address: Any = ("127.0.0.1", 0)) -> None:
        super().__init__(address, Handler)
        self.turns, self.side = turns, side
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @classmethod
    def on_socket(cls, path: Path, turns: list[Turn], side: list[Turn]) -> Upstream:
        """Listen where a gateway's door would."""
        made = type("SocketUpstream", (cls,), {"address_family": socket.AF_UNIX, "server_bind": TCPServer.server_bind})
        return cast(Upstream, made(turns, side, str(path)))

    def turn(self, wire: str, body: dict[str, Any]) -> tuple[Turn, int]:
        conversation = read_conversation(wire, body)
        said = conversation.opening if wire != RESPONSES else [i for i in body["input"] if i.get("role") == "user"]
        aside = bool(self.side) and "SIDE" in str(said)
        turns = self.side if aside else self.turns
        return turns[min(conversation.turns, len(turns) - 1)], conversation.turns + 100 * aside

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def log_message(self, *_: Any) -> None: ...

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        self._send(404, b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        self.server.requests.append((path, dict(self.headers), body))
        if path.endswith("count_tokens"):
            return self._send(200, b'{"input_tokens": 7}')
        wire = WIRES[path]
        turn, index = self.server.turn(wire, body)
        if turn.hang:
            self.server.closing.wait(30)
            return None
        if turn.errors:
            status = turn.errors.pop(0)
            error = {"type": "error", "error": {"type": "api_error", "message": f"scripted {status}"}}
            return self._send(status, json.dumps(error).encode())
        if turn.raw is not None:
            return self._send(200, turn.raw)
        if wire != ANTHROPIC and body.get("stream"):
            return self._send(200, _streamed(wire, body, turn, index), "text/event-stream")
        answer = _sse(turn, index) if wire == ANTHROPIC else _chat(turn, index)
        kind = "text/event-stream" if wire == ANTHROPIC else "application/json"
        return self._send(200, answer, kind, cut=turn.cut)

    def _send(self, status: int, data: bytes, kind: str = "application/json", cut: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:
            # Clients that repeat a request for long do so at once when they are told to.
            self.send_header("retry-after-ms", "5")
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.close_connection = True


def _chat(turn: Turn, index: int) -> bytes:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(turn.tools)
    ]
    message = {"role": "assistant", "content": turn.text or None, "tool_calls": calls or None}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    finish = turn.finish or ("tool_calls" if calls else "stop")
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], "usage": usage}).encode()


def _streamed(wire: str, body: dict[str, Any], turn: Turn, index: int) -> bytes:
    """An answer of OpenAI's kinds as a stream; a cut one stops before its end."""
    form = FORMS[wire]
    tools = tuple(
        ToolUse(tool_id(form.tool_prefix, index, n, "x"), name, arguments)
        for n, (name, arguments) in enumerate(turn.tools)
    )
    stop: Any = turn.finish or ("tool_use" if tools else "end_turn")
    answer = Answer(f"r{index}", body["model"], 1, turn.text, tools, USAGE, stop)
    events = form.stream(answer, Asked(read_conversation(wire, body).tools))
    return b"".join(event for event in events if not (turn.cut and form.closes(event)))


def _sse(turn: Turn, index: int) -> bytes:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 0, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": f"msg_{index}", "type": "message", "role": "assistant",
         "model": "scripted", "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}}
    ]  # fmt: skip
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}))
    for n, (name, arguments) in enumerate(turn.tools):
        start = {"type": "tool_use", "id": f"toolu_{index}_{n}", "name": name, "input": {}}
        blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}))
    for number, (start, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": number, "content_block": start})
        events.append({"type": "content_block_delta", "index": number, "delta": delta})
        events.append({"type": "content_block_stop", "index": number})
    stop = {"stop_reason": "tool_use" if turn.tools else "end_turn", "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}}, {"type": "message_stop"}]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


@dataclass
class Ran:
    """One session: how it ended, what was captured, what was read from it, and where it worked."""

    status: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    transcript: Transcript
    workspace: Path
    upstream: Upstream

    @property
    def kinds(self) -> list[str]:
        return [event.type for event in self.transcript.events]

    @property
    def final(self) -> tuple[str, str | None] | None:
        end = self.transcript.final
        return (end.status, end.error) if end else None


@pytest.fixture
def upstream() -> Iterator[Callable[..., Upstream]]:
    """Start scripted providers, on a port or at a door; each turn holds the fields of a ``Turn``."""
    started: list[Upstream] = []

    def start(turns: Sequence[Fields], side: Sequence[Fields] = (), door: Path | None = None) -> Upstream:
        scripts = [Turn(**turn) for turn in turns], [Turn(**turn) for turn in side]
        server = Upstream.on_socket(door, *scripts) if door else Upstream(*scripts)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.closing.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that an unprivileged user can reach and write to, with ``workspace`` and ``home``."""
    root = Path("/tmp") / f"wfbench-agents-{uuid.uuid4().hex[:8]}"
    for name in ("workspace", "home"):
        (root / name).mkdir(parents=True)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@dataclass
class Runner:
    """Runs an agent's invocation in ``place``: never with root's powers, and as nobody unless ``keep_uid`` is set.

    The uid is kept for what needs this interpreter, which may lie below root's home; the capabilities go all the same.
    """

    place: Path
    start: Callable[..., Upstream]
    name: str
    model: str = MODEL
    keep_uid: bool = False

    def __call__(
        self,
        *turns: dict[str, Any],
        side: Sequence[dict[str, Any]] = (),
        env: Mapping[str, str] | None = None,
        base: str = "",
        timeout: float = 120,
        **fields: Any,
    ) -> Ran:
        """Run one session; ``fields`` are those of a ``SessionInput``."""
        server = self.start(turns, side)
        agent = get_agent(self.name)
        workspace, home = self.place / "workspace", self.place / "home"
        told = {
            "prompt": "Do it.",
            "model": self.model,
            "session_id": str(uuid.uuid4()),
            "key": KEY,
            "timeout": timeout,
        }
        places = {"base_url": base or server.url, "workspace": str(workspace), "home": str(home)}
        invocation = agent.invocation(SessionInput(**{**told, **places, **fields}))
        argv, whole = self._prepared(agent, invocation, home)
        status, stdout, stderr, seconds = _run(argv, {**whole, **(env or {})}, workspace, invocation.stdin, timeout)
        return Ran(status, stdout, stderr, seconds, agent.read(stdout, status), workspace, server)

    def _prepared(self, agent: Agent, invocation: Invocation, home: Path) -> tuple[list[str], dict[str, str]]:
        mounts = agent.find(self.model, self.place).mounts
        root = Path(tempfile.mkdtemp(dir=self.place, prefix="mounts-"))
        layout = lay_out(Command(invocation.argv, mounts, 0), root, choose_identity(), None)
        for name, data in invocation.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(data)
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", **invocation.env}
        return [*self._less_privilege(), *layout.argv(invocation.argv)], env

    def _less_privilege(self) -> list[str]:
        if os.geteuid() != 0:
            return []
        if self.keep_uid:
            return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", self.place], check=True)
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def _run(
    argv: list[str], env: dict[str, str], workspace: Path, stdin: bytes, timeout: float
) -> tuple[int | None, bytes, bytes, float]:
    begin = time.perf_counter()
    process = subprocess.Popen(
        argv,
        cwd=workspace,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        stdout, stderr = process.communicate()
        status = None
    return status, stdout, stderr, time.perf_counter() - begin


@pytest.fixture
def runner(place: Path, upstream: Callable[..., Upstream]) -> Callable[..., Runner]:
    """Make a runner of the named agent, which must be installed."""

    def make(name: str, model: str = MODEL, **fields: Any) -> Runner:
        require_agent(name, place, model)
        return Runner(place, upstream, name, model, **fields)

    return make


@pytest.fixture
def skilled(runner: Callable[..., Runner]) -> Callable[..., Runner]:
    """Make a runner of the named agent over a workspace with the skill ``work``."""

    def make(name: str) -> Runner:
        made = runner(name)
        file = made.place / "workspace/.claude/skills/work/SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text("---\nname: work\ndescription: Does the work\n---\n# Work\nDo it well.\n")
        return made

    return make
