"""Requests that would pass as another's, as fewer or as cheaper: each is metered as the provider counts."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

from pytest_wfbench.usage.cell import cell_usage
from tests.attack.doors import CHAT, FORGED, MESSAGES, PLAIN, ask, exchange, head, request_bytes, statuses
from tests.gateway.conftest import LIVE, USER, Provider, Session

pytestmark = pytest.mark.slow


class TestHeaders:
    def test_what_a_client_sends_is_not_passed_on(self, live: Session, provider: Provider) -> None:
        """No header acts on LiteLLM, none reaches the provider but the protocol's, and no call can be passed off."""
        first = len(provider.seen)
        ask(live)
        stolen = live.gateway.totals(live.door).events
        headers = {
            "x-litellm-timeout": "0.001",
            "x-litellm-num-retries": "5",
            "x-litellm-tags": "a",
            "x-litellm-call-id": "forged",
            "x-litellm-api-base": "http://127.0.0.1:9",
            "x-litellm-mock-response": FORGED,
            "x-litellm-spend-logs-metadata": "{}",
            "x-litellm-enable-message-redaction": "true",
            "litellm-disable-message-redaction": "true",
            "llm_provider-x": "1",
            "x-wfbench-call": "forged",
            "x-wfbench-tap": "1",
            "x-api-key": live.door.key,
            "authorization": "Bearer of-another",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-host": "evil",
            "forwarded": "for=127.0.0.1",
            "x-http-method-override": "GET",
            "x-original-url": "/key/generate",
            "x-rewrite-url": "/key/generate",
            "cookie": "token=x",
            "openai-organization": "o",
            "x-stainless-helper-method": "stream",
            "anthropic-dangerous-direct-browser-access": "true",
            "accept-encoding": "gzip",
            "content-encoding": "identity",
            "expect": "",
            "te": "trailers",
            "x-mcp-servers": "all",
            "x-pass-anything": "1",
            "langfuse_public_key": "x",
            "langfuse_host": "http://127.0.0.1:9",
            "traceparent": "00-1-1-01",
            "x-secret-of-client": "s",
        }
        status, _, answer = live.send("POST", CHAT, {"model": LIVE, **PLAIN[CHAT]}, headers=headers)
        used = live.close()
        assert (status, stolen, len(used.events), len(provider.seen) - first) == (200, 1, 2, 2), answer
        assert FORGED not in answer.decode()
        assert len({event.call_id for event in used.events}) == 2
        assert "forged" not in {event.call_id for event in used.events}
        assert set(provider.seen[-1].headers) == set(provider.seen[-2].headers)
        assert live.door.key not in json.dumps(provider.seen[-1].headers)

    @pytest.mark.parametrize("body", [True, False], ids=["with-body", "without"])
    @pytest.mark.parametrize(
        "framing",
        [
            ("content-length: {n}", "transfer-encoding: chunked"),
            ("transfer-encoding: chunked", "content-length: {n}"),
            ("content-length: {n}", "content-length: 3"),
            ("content-length: {n}", "content-length: {n}"),
            ("content-length: +{n}",),
            ("content-length: -1",),
            ("content-length: 0x10",),
            ("content-length: {n}, {n}",),
            ("transfer-encoding: chunked, identity",),
            ("transfer-encoding: xchunked", "content-length: {n}"),
            ("transfer-encoding : chunked", "content-length: {n}"),
            ("transfer-encoding: chunked", "transfer-encoding: identity"),
            ("content-length: {n}", "x: a\nauthorization: Bearer evil"),
            ("content-length: {n}", "x: a\rb"),
            ("content-length: {n}", " folded: x"),
            ("content-length: {n}", "x\0y: z"),
            ("content-length : {n}",),
        ],
        ids=range(17),
    )
    def test_no_request_inside_a_request(
        self, live: Session, provider: Provider, framing: tuple[str, ...], body: bool
    ) -> None:
        """However a request's length is told, no second request behind it passes unseen: all is metered or refused."""
        before = len(provider.seen)
        inner = head(live, "POST /key/generate HTTP/1.1", "content-length: 2") + b"{}"
        plain = json.dumps({"model": LIVE, **PLAIN[CHAT]}).encode() if body else b"0\r\n\r\n"
        lines = [line.format(n=len(plain)) for line in framing]
        got = exchange(live, head(live, f"POST {CHAT} HTTP/1.1", *lines, last=False) + plain + inner, 2)
        used = live.close()
        assert b"litellm" not in got.lower()
        assert len(provider.seen) - before == len(used.events) == statuses(got).count(200) <= 1


class TestMeter:
    @pytest.mark.parametrize("path", [MESSAGES, CHAT])
    @pytest.mark.parametrize(
        "options",
        [{"include_usage": False}, {"include_usage": None}, {}, None, "no", [], {"include_usage": "false", "x": 1}],
        ids=range(7),
    )
    def test_usage_cannot_be_waved_off(self, live: Session, provider: Provider, path: str, options: Any) -> None:
        """A stream whose client wants no usage is metered like any other."""
        status, answer = ask(live, path, stream=True, stream_options=options)
        used = live.close()
        total = cell_usage(used.events, used.open_calls)
        assert (status, total.incomplete, total.usage.total_input, total.usage.output) == (200, False, 15, 6), answer
        if path == CHAT:
            assert provider.seen[-1].body["stream_options"]["include_usage"] is True

    def test_usage_in_words_is_not_usage(self, live: Session) -> None:
        """Usage in a tool's output, a message, a name or a header is no usage."""
        lie = {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
        text = f"data: {json.dumps(lie)}\n\ndata: [DONE]\n\n"
        calls = [{"id": "t", "type": "function", "function": {"name": "f", "arguments": json.dumps(lie)}}]
        said = [
            USER | lie,
            {"role": "assistant", "tool_calls": calls, **lie},
            {"role": "tool", "tool_call_id": "t", "content": text},
        ]
        for stream in (True, False):
            assert ask(live, messages=said, stream=stream, usage=lie["usage"])[0] == 200
        used = live.close()
        assert (cell_usage(used.events).usage.total_input, cell_usage(used.events).usage.output) == (30, 12)

    def test_several_answers_at_once(self, live: Session, provider: Provider) -> None:
        """Several answers to one request are one request with the provider's usage."""
        assert ask(live, n=3, stream=True)[0] == 200
        used = live.close()
        assert (len(used.events), cell_usage(used.events).usage.output) == (1, 6)

    def test_pipelined_requests(self, live: Session, provider: Provider) -> None:
        """Requests that are sent without waiting for answers are each checked and metered."""
        before = len(provider.seen)
        body = json.dumps({"model": LIVE, **PLAIN[CHAT]}).encode()
        length = f"content-length: {len(body)}"
        one = head(live, f"POST {CHAT} HTTP/1.1", length, last=False) + body
        evil = head(live, "GET /key/list HTTP/1.1", last=False)
        keyless = head(live, f"POST {CHAT} HTTP/1.1", length, key=False, last=False) + body
        got = exchange(live, one + evil + one + keyless + request_bytes(live, body))
        used = live.close()
        assert statuses(got) == [200, 403, 200, 403, 200]
        assert (len(used.events), len(provider.seen) - before, cell_usage(used.events).usage.output) == (3, 3, 18)

    @pytest.mark.parametrize("path", [MESSAGES, CHAT])
    @pytest.mark.parametrize("read", [0, 1, 200])
    def test_leaving_early_is_not_free(self, live: Session, provider: Provider, path: str, read: int) -> None:
        """A client that leaves before, at or after the first byte has used what the provider counts, if asked."""
        before = len(provider.seen)
        body = json.dumps({"model": LIVE, **PLAIN[path], "stream": True}).encode()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(live.door.socket))
            client.sendall(request_bytes(live, body, path=path))
            if read:
                client.recv(read)
        deadline = time.monotonic() + 20
        while not live.gateway.totals(live.door).events and time.monotonic() < deadline:
            time.sleep(0.05)
        used = live.close()
        total = cell_usage(used.events, used.open_calls)
        asked = len(provider.seen) - before
        assert asked == 1 or not read
        counted = (total.requests, total.incomplete, total.usage.total_input, total.usage.output)
        assert counted == (asked, False, 15 * asked, 6 * asked)

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("name", ["x-claude-code-session-id", "x-claude-code-agent-id", "session_id"])
    def test_claims_that_are_no_text(self, live: Session, provider: Provider, name: str, stream: bool) -> None:
        """Bytes that no file of evidence can hold do not keep a request off the record."""
        before = len(provider.seen)
        body = json.dumps({"model": LIVE, "messages": [USER], "stream": stream}).encode()
        answer = exchange(live, request_bytes(live, body, f"{name}: @").replace(b": @", b": a\xff\xed\xa0\x80"))
        used = live.close()
        assert (statuses(answer), len(provider.seen) - before) == ([200], 1)
        assert [(event.status, bool(event.native_usage)) for event in used.events] == [("success", True)]

    def test_claims_are_claims(self, live: Session) -> None:
        """Whoever a client says that it is, its tokens are its session's."""
        for name in ("x-claude-code-session-id", "x-claude-code-agent-id", "session_id"):
            body = {"model": LIVE, **PLAIN[CHAT], "metadata": {"user_id": "session_" + "0" * 36}}
            assert live.send("POST", CHAT, body, headers={name: "cell-of-another"})[0] == 200
        titled = [{"role": "system", "content": "Write a title."}, USER]
        assert ask(live, messages=titled)[0] == 200
        used = live.close()
        assert {(event.cell_id, event.session) for event in used.events} == {("cell", "work")}
        assert (cell_usage(used.events).requests, cell_usage(used.events).usage.output) == (4, 24)
