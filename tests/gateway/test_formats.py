"""Which wire format reaches which provider, through a real LiteLLM, and that it is metered there."""

from __future__ import annotations

import pytest

from pytest_wfbench.usage.cell import cell_usage
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES
from tests.upstream import Model

from .conftest import LOCAL, ROUTED, TEAM, UPSTREAM_KEY, USER, OpenSession

pytestmark = pytest.mark.slow

PATHS = {ANTHROPIC: "/v1/messages", RESPONSES: "/v1/responses", CHAT: "/v1/chat/completions"}
BODIES = {ANTHROPIC: {"messages": [USER], "max_tokens": 50}, RESPONSES: {"input": "hello"}, CHAT: {"messages": [USER]}}


class TestFormats:
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("wire", list(PATHS))
    @pytest.mark.parametrize("model", [TEAM, ROUTED, LOCAL])
    def test_metered(self, open_session: OpenSession, polyglot: Model, model: str, wire: str, stream: bool) -> None:
        """A client's format passes as it is where the provider speaks it, streamed where the client streams; what the
        provider bills is recorded, to the token."""
        session = open_session("live", models=(model,))
        before = len(polyglot.ledger)
        status, _, answer = session.send("POST", PATHS[wire], {"model": model, "stream": stream, **BODIES[wire]})
        used = session.close()
        (billed,) = polyglot.ledger[before:]
        (event,) = used.events
        total = cell_usage(used.events, used.open_calls)
        assert (status, b"It is done." in answer) == (200, True), answer
        assert (billed.wire, billed.streamed) == (CHAT if model == LOCAL else wire, stream)
        assert billed.model == model.partition("/")[2]
        assert (event.status, event.wire, event.answered_model) == ("success", billed.wire, "scripted-2026")
        assert (event.provider, event.requested_model) == (model.partition("/")[0], model)
        assert total.usage.ordinary_input == billed.usage.ordinary_input
        assert total.usage.cache_read_input == billed.usage.cache_read_input
        assert (total.usage.output, total.usage.reasoning_output) == (
            billed.usage.output,
            billed.usage.reasoning_output,
        )
        assert not total.incomplete

    @pytest.mark.parametrize(("model", "key"), [(TEAM, f"Bearer {UPSTREAM_KEY}"), (LOCAL, None)])
    def test_key(self, open_session: OpenSession, polyglot: Model, model: str, key: str | None) -> None:
        """A provider gets its own key, and one that takes none gets none: not the gateway's either."""
        session = open_session("live", models=(model,))
        session.send("POST", "/v1/chat/completions", {"model": model, "messages": [USER]})
        headers = polyglot.ledger[-1].headers
        assert (headers.get("authorization"), headers.get("x-api-key")) == (key, None)

    def test_cache_marks(self, open_session: OpenSession, polyglot: Model) -> None:
        """What only Anthropic's format can say reaches a team's proxy: it is not translated on the way."""
        session = open_session("live", models=(TEAM,))
        system = [{"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral"}}]
        session.send("POST", "/v1/messages", {"model": TEAM, **BODIES[ANTHROPIC], "system": system})
        assert polyglot.ledger[-1].body["system"] == system

    @pytest.mark.parametrize("model", [TEAM, ROUTED])
    def test_effort(self, open_session: OpenSession, polyglot: Model, model: str) -> None:
        """Effort and thinking that a client asks for reach a provider whose model LiteLLM does not know."""
        session = open_session("live", models=(model,))
        asked = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
        session.send("POST", "/v1/messages", {"model": model, **BODIES[ANTHROPIC], **asked})
        assert {name: polyglot.ledger[-1].body.get(name) for name in asked} == asked
