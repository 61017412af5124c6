"""The far side: who may speak to it, and what it does with a client that has gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Claims, Event
from pytest_wfbench.gateway import tap as tap_module
from pytest_wfbench.gateway.answers.base import Answer, Asked
from pytest_wfbench.gateway.api import Labels, OpenRequest
from pytest_wfbench.gateway.calls import Call, Calls, Session, Target
from pytest_wfbench.gateway.http import listen, unix_client
from pytest_wfbench.gateway.keys import Claim
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.gateway.tap import Tap
from pytest_wfbench.gateway.upstream import Cut, UpstreamAnswer, UpstreamRequest
from pytest_wfbench.wires import ANTHROPIC

EVENTS = tuple(
    FORMS[ANTHROPIC].stream(
        Answer("1", "m", 1, "some text", (), Reported(ordinary_input=5, output=9), "end_turn"), Asked()
    )
)


@dataclass
class Provider:
    """A provider that answers event by event, ``pause`` seconds apart, and stops for ever after ``silent_after``."""

    pause: float = 0.0
    silent_after: int | None = None
    unreachable: bool = False
    says: Sequence[bytes] = EVENTS
    seen: list[UpstreamRequest] = field(default_factory=list)

    @asynccontextmanager
    async def answer(self, request: UpstreamRequest) -> AsyncIterator[UpstreamAnswer]:
        self.seen.append(request)
        if self.unreachable:
            raise Cut("no route to host")
        yield UpstreamAnswer(200, self._events(), streamed=True)

    async def _events(self) -> AsyncIterator[bytes]:
        for number, event in enumerate(self.says):
            await asyncio.sleep(3600 if number == self.silent_after else self.pause)
            yield event


@dataclass
class Bench:
    """A tap on a real socket, and one call that may pass it."""

    path: Path
    call: Call

    async def post(self, headers: Mapping[str, str], model: str = "m", path: str = "/v1/messages") -> tuple[int, bytes]:
        async with (
            unix_client(self.path) as client,
            client.post(f"http://tap{path}", data=json.dumps({"model": model, "stream": True}), headers=headers) as got,
        ):
            return got.status, await got.read()

    @property
    def good(self) -> dict[str, str]:
        return {"x-api-key": "secret", "x-wfbench-call": self.call.id, "anthropic-beta": "b", "x-evil": "1"}

    def events(self) -> list[Event]:
        return self.call.session.events


Scenario = Callable[[Bench], Awaitable[Any]]
Play = Callable[[Provider, Scenario], Any]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a scenario against a tap in front of a provider."""

    async def playing(provider: Provider, scenario: Scenario) -> Any:
        labels = Labels(task="t", arm="a", session="work", run=1, agent="x")
        request = OpenRequest(cell_id="c", labels=labels, models=("anthropic/m",), seconds=9)
        target = Target("anthropic", "m")
        session = Session(request, Claim("c", "work", "d", (), 0), "s", {"anthropic/m": target}, None)
        calls = Calls()
        call = calls.open(session, target, "anthropic/m", Claims(), "main")
        tap = Tap(calls, "secret", provider, provider, lambda text: text)
        listener = await listen(tmp_path / "tap", tap.handle)
        try:
            return await scenario(Bench(tmp_path / "tap", call))
        finally:
            await listener.close(0.1)

    return lambda provider, scenario: asyncio.run(playing(provider, scenario))


class TestWhoMaySpeak:
    @pytest.mark.parametrize(
        ("headers", "model", "path", "status"),
        [
            ({"x-api-key": "guess"}, "m", "/v1/messages", 403),
            ({"x-api-key": ""}, "m", "/v1/messages", 403),
            ({"x-wfbench-call": "unknown"}, "m", "/v1/messages", 403),
            ({}, "other", "/v1/messages", 403),
            ({}, "m", "/v1/files", 404),
        ],
    )
    def test_others_are_refused(self, play: Play, headers: dict[str, str], model: str, path: str, status: int) -> None:
        """A wrong secret, an unknown call, a model outside the session's and any other route never reach a provider."""
        provider = Provider()
        got, _ = play(provider, lambda bench: bench.post({**bench.good, **headers}, model, path))
        assert (got, provider.seen) == (status, [])

    def test_what_goes_on(self, play: Play) -> None:
        """The call id and the gateway's secret are stripped; only the protocol's headers go on."""
        provider = Provider()
        play(provider, lambda bench: bench.post(bench.good))
        assert "anthropic-beta" in provider.seen[0].headers
        assert not {"x-api-key", "x-wfbench-call", "x-evil", "authorization"} & set(provider.seen[0].headers)


class TestClientsThatLeave:
    def test_the_stream_is_drained(self, play: Play) -> None:
        """When the client leaves in the midst of a stream, it is read to its end and metered, as cancelled."""

        async def scenario(bench: Bench) -> list[Event]:
            async with unix_client(bench.path) as client:
                body = json.dumps({"model": "m", "stream": True})
                async with client.post("http://tap/v1/messages", data=body, headers=bench.good) as got:
                    await got.content.readany()
            await asyncio.sleep(0.05 * len(EVENTS) + 0.5)
            return bench.events()

        (event,) = play(Provider(pause=0.05), scenario)
        assert (event.status, event.native_usage) == ("cancelled", {"input_tokens": 5, "output_tokens": 9})

    def test_not_for_ever(self, play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
        """A stream that does not end is given up when its client has been gone for long enough."""
        monkeypatch.setattr(tap_module, "DRAIN_SECONDS", 0.3)

        async def scenario(bench: Bench) -> list[Event]:
            async with unix_client(bench.path) as client:
                body = json.dumps({"model": "m", "stream": True})
                async with client.post("http://tap/v1/messages", data=body, headers=bench.good) as got:
                    await got.content.readany()
            await asyncio.sleep(1.2)
            return bench.events()

        (event,) = play(Provider(pause=0.1, silent_after=5), scenario)
        assert event.status == "cancelled"
        assert "output_tokens" not in (event.native_usage or {})

    def test_a_provider_that_cannot_be_reached(self, play: Play) -> None:
        """A connection that fails is a failure that used nothing."""

        async def scenario(bench: Bench) -> tuple[int, list[Event]]:
            status, _ = await bench.post(bench.good)
            return status, bench.events()

        status, (event,) = play(Provider(unreachable=True), scenario)
        assert (status, event.status, event.error_class) == (502, "failure", "connection")
        assert (event.ttft_ms, event.error_message) == (None, "no route to host")

    def test_attempts_are_numbered(self, play: Play) -> None:
        """Should the proxy repeat a request, each attempt is an event of its own."""

        async def scenario(bench: Bench) -> list[Event]:
            await bench.post(bench.good)
            await bench.post(bench.good)
            return bench.events()

        assert [event.attempt for event in play(Provider(), scenario)] == [1, 2]


class TestOddAnswers:
    @pytest.mark.parametrize("odd", ['"\\ud800"', '{"a":' * 230 + "1" + "}" * 230, '{"a":' * 900 + "1" + "}" * 900])
    def test_the_event_can_be_read_again(self, play: Play, odd: str) -> None:
        """Numbers, a model or an id that no file can hold are unknown or replaced; the request is on the record."""
        message = f'{{"id": "\\ud800x", "model": "\\udfffm", "usage": {{"input_tokens": 5, "odd": {odd}}}}}'
        told = f'data: {{"type": "message_start", "message": {message}}}\n\ndata: {{"type": "message_stop"}}\n\n'

        async def scenario(bench: Bench) -> list[Event]:
            await bench.post(bench.good)
            return bench.events()

        (event,) = play(Provider(says=(told.encode(),)), scenario)
        assert Event.model_validate_json(event.model_dump_json()) == event
        assert (event.status, event.native_usage) == ("success", None)
        assert (event.answered_model, event.response_id) == ("?m", "?x")


class TestWhatIsAsked:
    @pytest.mark.parametrize(
        "more",
        [
            {"web_search_options": {}},
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}]},
        ],
        ids=range(3),
    )
    def test_what_the_door_did_not_see(self, play: Play, more: dict[str, Any]) -> None:
        """What LiteLLM makes of a request is looked at again: nothing makes the provider act without permission."""
        provider = Provider()

        async def scenario(bench: Bench) -> int:
            body = json.dumps({"model": "m", **more})
            async with (
                unix_client(bench.path) as client,
                client.post("http://tap/v1/messages", data=body, headers=bench.good) as got,
            ):
                return got.status

        assert (play(provider, scenario), provider.seen) == (400, [])
