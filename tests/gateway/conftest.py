"""What the tests of the gateway share: one real LiteLLM process, and scripts to answer for its providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.gateway.answers.base import Answer, Asked
from pytest_wfbench.gateway.api import Door, Labels, OpenRequest, Route, SessionUsage
from pytest_wfbench.gateway.asking import UnixHTTPConnection
from pytest_wfbench.gateway.control import Provider as KnownProvider
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.wires import CHAT
from tests.serving import Request, Response, serve
from tests.upstream import Model, scripted_model

from .rogue import Rogue, rogue_provider
from .strict import STRICT, request_of, strict

__all__ = ["strict"]

MODEL = "replay/demo"
LIVE = "openai/gpt-live"
ROGUE = "anthropic/rogue"
# Of providers that LiteLLM is told nothing of but their format, by the wire formats that they speak themselves.
TEAM, ROUTED, LOCAL = "litellm/team-model", "openrouter/meta-llama/llama-3.3-70b:free", "ollama/meta-llama/llama-3.3:8b"
UPSTREAM_KEY = "sk-upstream-0123456789abcdef"
LIVE_USAGE = Reported(ordinary_input=9, cache_read_input=4, cache_write_input=2, output=6, reasoning_output=1)
INPUT = "ordinary_input: 2000, cache_read_input: 7000, cache_write_input: 1000"
SCRIPTS = {
    # A session of two turns with every kind of number, by each provider.
    "claude": f"""
model: claude-scripted
provider: anthropic
match: {{task: claude}}
turns:
  - text: I will look.
    tools: [{{name: bash, input: {{command: ls}}}}, {{name: bash, input: {{command: pwd}}}}]
    usage: {{{INPUT}, output: 50}}
  - text: Done.
    usage: {{ordinary_input: 12, cache_read_input: 0, cache_write_input: 0, output: 3}}
""",
    "gpt": f"""
model: gpt-scripted
provider: openai
match: {{task: gpt}}
turns:
  - text: I will look.
    tools: [{{name: bash, input: {{command: ls}}}}, {{name: bash, input: {{command: pwd}}}}]
    usage: {{{INPUT}, output: 50, reasoning_output: 20}}
  - text: Done.
    usage: {{ordinary_input: 12, cache_read_input: 0, cache_write_input: 0, output: 3, reasoning_output: 0}}
""",
    "retry": """
model: claude-scripted
provider: anthropic
match: {task: retry}
turns:
  - text: At last.
    usage: {ordinary_input: 5, cache_read_input: 0, cache_write_input: 0, output: 2}
    error: {status: 429, type: rate_limit_error, message: slow down, times: 2}
""",
    "cut": """
model: claude-scripted
provider: anthropic
match: {task: cut}
turns:
  - text: This answer breaks off before its end.
    cut: true
    usage: {ordinary_input: 5, cache_read_input: 1, cache_write_input: 0, output: 9}
""",
    "hang": """
model: claude-scripted
provider: anthropic
match: {task: hang}
turns:
  - text: Never said.
    delay: 10m
    usage: {ordinary_input: 5, cache_read_input: 1, cache_write_input: 0, output: 9}
""",
    "late": """
model: claude-scripted
provider: anthropic
match: {task: late}
turns:
  - text: Said to nobody.
    delay: 700ms
    usage: {ordinary_input: 5, cache_read_input: 1, cache_write_input: 0, output: 9}
""",
    "sides": """
model: claude-scripted
provider: anthropic
match: {task: sides}
turns:
  - tools: [{name: Task, input: {subagent_type: scout, prompt: Find the ledger.}}]
    usage: {ordinary_input: 10, cache_read_input: 0, cache_write_input: 0, output: 1}
  - text: Found it.
    on: subagent:scout
    usage: {ordinary_input: 20, cache_read_input: 0, cache_write_input: 0, output: 2}
  - text: A short title
    on: title
    usage: {ordinary_input: 30, cache_read_input: 0, cache_write_input: 0, output: 3}
""",
}

Reply = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Session:
    """A client on one door, over a real socket."""

    gateway: RunningGateway
    door: Door
    model: str = MODEL

    def send(
        self, method: str, path: str, body: Any = None, key: str | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = UnixHTTPConnection(self.door.socket, 60)
        sent = {
            "authorization": f"Bearer {key or self.door.key}",
            "content-type": "application/json",
            **(headers or {}),
        }
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, path: str, **body: Any) -> Reply:
        return self.send("POST", path, {"model": self.model, **body})

    def chat(self, *messages: dict[str, Any], **body: Any) -> Reply:
        return self.post("/v1/chat/completions", messages=[USER, *messages], **body)

    def close(self) -> SessionUsage:
        return self.gateway.close(self.door)


USER = {"role": "user", "content": "hello"}
OpenSession = Callable[..., Session]


@pytest.fixture(scope="session")
def usage_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results") / "usage.jsonl"


@dataclass(frozen=True)
class Seen:
    """One request as it reached the provider."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Provider:
    """A provider on this machine: it answers as the Chat Completions API does, and remembers what it was sent."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.body)
        self.seen.append(Seen(request.path, dict(request.headers), body))
        if "fail" in json.dumps(body["messages"]):
            return Response(b'{"error": {"message": "out of order", "type": "server_error"}}', status=503)
        answer = Answer("1", "gpt-live-2026", 1, "From afar.", (), LIVE_USAGE, "end_turn")
        form = FORMS[CHAT]
        if body.get("stream"):
            return Response(b"".join(form.stream(answer, Asked())), "text/event-stream")
        return Response(json.dumps(form.whole(answer, Asked())).encode())


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    made = Provider()
    with serve(made.answer) as made.url:
        yield made


@pytest.fixture(scope="session")
def rogue() -> Iterator[Rogue]:
    with rogue_provider() as server:
        yield server


@pytest.fixture(scope="session")
def polyglot() -> Iterator[Model]:
    """A provider that speaks every wire format."""
    with scripted_model() as server:
        yield server


@pytest.fixture(scope="session")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, usage_path: Path, provider: Provider, rogue: Rogue, polyglot: Model
) -> Iterator[RunningGateway]:
    """A running gateway; LiteLLM boots once for all tests."""
    directory = tmp_path_factory.mktemp("cassettes")
    for name, text in SCRIPTS.items():
        (directory / f"{name}.yaml").write_text(text)
    known = KnownProvider(name="openai", base_url=provider.url, key=UPSTREAM_KEY)
    unruly = KnownProvider(name="anthropic", base_url=rogue.url, key=UPSTREAM_KEY)
    keys = {"litellm": UPSTREAM_KEY, "openrouter": UPSTREAM_KEY, "ollama": ""}
    others = (KnownProvider(name=name, base_url=polyglot.url, key=key) for name, key in keys.items())
    with start_gateway(GatewayConfig(providers=(known, unruly, *others))) as running:
        live = (Route(model=model) for model in (LIVE, ROGUE, TEAM, ROUTED, LOCAL))
        routes = (Route(model=MODEL, cassettes=directory), *live)
        running.begin("sweep", usage_path, routes)
        running.wait_ready()
        yield running


@pytest.fixture
def open_session(gateway: RunningGateway) -> Iterator[OpenSession]:
    """Open sessions that play a script; those a test leaves open are closed after it."""
    opened: list[Session] = []

    def opening(task: str, session: str = "work", cell: str = "cell", **options: Any) -> Session:
        labels = Labels(task=task, arm="workflow", session=session, run=1, agent="mini")
        request = OpenRequest(cell_id=cell, labels=labels, **{"seconds": 600, "models": (MODEL,), **options})
        opened.append(Session(gateway, gateway.open(request)))
        return opened[-1]

    yield opening
    for session in opened:
        if session.door.socket.exists():
            session.close()


@pytest.fixture
def open_strict(strict: RunningGateway) -> Iterator[OpenSession]:
    """Open sessions of a cell on the strict gateway; those a test leaves open are closed after it."""
    opened: list[Session] = []

    def opening(task: str, cell: str, session: str = "work", model: str = STRICT) -> Session:
        opened.append(Session(strict, strict.open(request_of(task, cell, session, model)), model))
        return opened[-1]

    yield opening
    for session in opened:
        if session.door.socket.exists():
            session.close()
