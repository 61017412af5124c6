"""A real provider behind the tap, on this machine."""

from __future__ import annotations

import json

import pytest

from pytest_wfbench.gateway.supervisor import RunningGateway
from pytest_wfbench.usage.cell import cell_usage

from .conftest import LIVE, UPSTREAM_KEY, USER, OpenSession, Provider

pytestmark = pytest.mark.slow


class TestForward:
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
    def test_metered(self, open_session: OpenSession, provider: Provider, path: str, stream: bool) -> None:
        """What a provider answers passes, and what it counts is recorded, whether or not the client asked for it."""
        session = open_session("live", models=(LIVE,))
        body = {"model": LIVE, "max_tokens": 50, "messages": [USER], "stream": stream}
        status, _, answer = session.send("POST", path, body)
        used = session.close()
        (event,) = used.events
        total = cell_usage(used.events, used.open_calls)
        assert (status, b"From afar." in answer) == (200, True)
        assert (event.status, event.answered_model, event.provider) == ("success", "gpt-live-2026", "openai")
        assert (total.usage.total_input, total.usage.output, total.usage.reasoning_output) == (15, 6, 1)
        assert not total.incomplete

    def test_the_providers_key(self, open_session: OpenSession, gateway: RunningGateway, provider: Provider) -> None:
        """The provider gets its own key and its own model name, and none of the gateway's secrets or headers."""
        session = open_session("live", models=(LIVE,))
        before = len(provider.seen)
        session.send(
            "POST", "/v1/chat/completions", {"model": LIVE, "messages": [USER]}, headers={"x-secret-of-client": "1"}
        )
        (seen,) = provider.seen[before:]
        headers = {name.lower(): value for name, value in seen.headers.items()}
        assert headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
        assert (seen.path, seen.body["model"]) == ("/v1/chat/completions", "gpt-live")
        assert not [name for name in headers if name.startswith(("x-wfbench", "x-secret", "x-litellm", "x-stainless"))]
        assert session.door.key not in json.dumps(headers)

    def test_an_error_is_recorded(self, open_session: OpenSession, provider: Provider) -> None:
        """A provider's error reaches the client after exactly one attempt, with the provider's own words recorded."""
        session = open_session("live", models=(LIVE,))
        before = len(provider.seen)
        body = {"model": LIVE, "messages": [{"role": "user", "content": "fail"}]}
        status, _, _ = session.send("POST", "/v1/chat/completions", body)
        (event,) = session.close().events
        assert (status, len(provider.seen) - before) == (503, 1)
        assert (event.status, event.http_status, event.error_message) == ("failure", 503, "out of order")
