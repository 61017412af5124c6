"""Signs of life: what counts as one, what is asked again, and what is said."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.clock import now, stamp
from pytest_wfbench.evidence.event import Event
from pytest_wfbench.gateway.api import Door, GatewayRefused, OpenRequest, SessionUsage
from pytest_wfbench.sweep import preflight
from pytest_wfbench.sweep.preflight import Probe, dead_models
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES
from tests.serving import Request, Response, serve

PROBE = Probe("litellm/m", CHAT, ("mini:litellm/m", "opencode:litellm/m"))


@dataclass(frozen=True)
class Reply:
    """What a door answers, and what the event says of the provider: ``none`` status where nothing was sent on."""

    status: int = 200
    body: str = "{}"
    headers: dict[str, str] = field(default_factory=dict)
    event: str | None = "success"
    error: str | None = None


@dataclass
class Gateway:
    """Doors that answer from a list, each over a real socket; a model without one is refused."""

    directory: Path
    replies: dict[str, list[Reply]]
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    opened: list[OpenRequest] = field(default_factory=list)
    _used: dict[Path, list[Event]] = field(default_factory=dict)
    _servers: dict[Path, ExitStack] = field(default_factory=dict)

    def open(self, request: OpenRequest) -> Door:
        (model,) = request.models
        if model not in self.replies:
            raise GatewayRefused(f"model {model} is not among the sweep's routes")
        self.opened.append(request)
        reply = self.replies[model].pop(0)
        path = self.directory / secrets.token_hex(4)
        self._used[path] = []
        self._servers[path] = stack = ExitStack()
        stack.enter_context(serve(partial(self._answer, path, reply, model), path))
        return Door(cell_id=request.cell_id, session=request.labels.session, socket=path, key="sk-door")

    def _answer(self, path: Path, reply: Reply, model: str, request: Request) -> Response:
        self.asked.append((request.path, request.headers["authorization"], json.loads(request.body)))
        self._used[path] += self._events(reply, model)
        return Response(reply.body.encode(), status=reply.status, headers=reply.headers)

    def _events(self, reply: Reply, model: str) -> list[Event]:
        if reply.event is None:
            return []
        known: dict[str, Any] = {"status": reply.event, "http_status": reply.status, "error_message": reply.error}
        where = {"sweep_id": "s", "cell_id": "preflight", "session": "preflight", "call_id": "c", "attempt": 1}
        asked = {"requested_model": model, "provider": "litellm", "wire": CHAT}
        return [Event(started_at=stamp(now()), completed_at=stamp(now()), **where, **asked, **known)]

    def close(self, door: Door) -> SessionUsage:
        self._servers[door.socket].close()
        return SessionUsage(events=tuple(self._used[door.socket]))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would have been slept."""
    slept: list[float] = []
    monkeypatch.setattr(preflight.time, "sleep", slept.append)
    return slept


@contextmanager
def gateway(directory: Path, *replies: Reply) -> Iterator[Gateway]:
    yield Gateway(directory, {PROBE.model: list(replies)})


def said(made: Gateway, *wanted: Probe) -> tuple[str, ...]:
    return dead_models(made, wanted or (PROBE,))  # type: ignore[arg-type]


class TestRequest:
    @pytest.mark.parametrize(
        ("wire", "path", "limit"),
        [
            (ANTHROPIC, "/v1/messages", "max_tokens"),
            (RESPONSES, "/v1/responses", "max_output_tokens"),
            (CHAT, "/v1/chat/completions", "max_tokens"),
        ],
    )
    def test_tiny(self, tmp_path: Path, pauses: list[float], wire: str, path: str, limit: str) -> None:
        """One small request, in the format of the agents that need it, in a session of its own."""
        with gateway(tmp_path, Reply()) as made:
            assert said(made, Probe(PROBE.model, wire, PROBE.subjects)) == ()
        [(asked, key, body)], [request] = made.asked, made.opened
        assert (asked, key, body["model"], body[limit]) == (path, "Bearer sk-door", PROBE.model, 256)
        assert len(json.dumps(body)) < 200
        assert (request.cell_id, request.labels.session, request.models) == ("preflight", "preflight", (PROBE.model,))

    def test_nothing_to_ask(self) -> None:
        """Where every model is replayed nothing is asked at all."""
        assert dead_models(None, ()) == ()  # type: ignore[arg-type]


class TestDead:
    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (Reply(400, event="failure", error="No fallback model group found for m"), "400 No fallback model group"),
            (Reply(401, event="failure", error="invalid\n x-api-key"), "401 invalid x-api-key"),
            (Reply(404, "<html>not here</html>", event="failure"), "404 <html>not here</html>"),
            (Reply(403, '{"error": 1}', event=None), '403 {"error": 1}'),
            (Reply(200, event="failure", error="overloaded"), "200 overloaded"),
            (Reply(400, "", event=None), "400 no word"),
        ],
    )
    def test_said(self, tmp_path: Path, pauses: list[float], reply: Reply, words: str) -> None:
        """What will not pass is asked once, and said in one line, in the provider's own words, with the subjects."""
        with gateway(tmp_path, reply) as made:
            (sentence,) = said(made)
        assert sentence.startswith(f"mini:litellm/m, opencode:litellm/m: {words}")
        assert (len(made.asked), pauses) == (1, [])

    def test_long_words_are_cut(self, tmp_path: Path, pauses: list[float]) -> None:
        """A page of words is no sentence."""
        with gateway(tmp_path, Reply(400, "x" * 100_000, event="failure")) as made:
            assert len(said(made)[0]) < 500

    def test_each_once(self, tmp_path: Path, pauses: list[float]) -> None:
        """Each dead model is said once; those that live are not."""
        bad = Reply(401, event="failure", error="no")
        made = Gateway(tmp_path, {"a/1": [bad], "a/2": [Reply()], "a/3": [bad]})
        wanted = [Probe(f"a/{n}", CHAT, (f"mini:a/{n}",)) for n in (1, 2, 3, 4)]
        assert said(made, *wanted) == (
            "mini:a/1: 401 no",
            "mini:a/3: 401 no",
            "mini:a/4: model a/4 is not among the sweep's routes",
        )


class TestPassing:
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
    def test_asked_again(self, tmp_path: Path, pauses: list[float], status: int) -> None:
        """What may pass is asked again: a busy provider is not dead."""
        with gateway(tmp_path, Reply(status, event="failure", error="busy"), Reply()) as made:
            assert said(made) == ()
        assert (len(made.asked), pauses) == (2, [1.0])

    def test_given_up(self, tmp_path: Path, pauses: list[float]) -> None:
        """Three times is enough; the provider's word on when to come again is heeded, within bounds."""
        waits = ("7", "3600", "soon")
        replies = [Reply(429, event="failure", error="quota", headers={"retry-after": wait}) for wait in waits]
        with gateway(tmp_path, *replies) as made:
            (sentence,) = said(made)
        assert sentence.endswith(": 429 quota")
        assert (len(made.asked), pauses) == (3, [7.0, 20.0])
