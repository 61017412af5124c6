"""Paths of a door, over a real LiteLLM: its routes, and no page, admin route, upgrade or other spelling."""

from __future__ import annotations

import json

import pytest

from tests.attack.doors import CHAT, MESSAGES, PLAIN, RESPONSES, exchange, head, request_bytes, statuses
from tests.gateway.conftest import LIVE, Provider, Session

pytestmark = pytest.mark.slow

TARGETS = [
    *(
        f"GET {path}"
        for path in (
            "/",
            "/docs",
            "/redoc",
            "/openapi.json",
            "/ui",
            "/ui/",
            "/sso/key/generate",
            "/health",
            "/health/liveliness",
            "/health/readiness",
            "/metrics",
            "/config/yaml",
            "/get/config/callbacks",
            "/key/info",
            "/key/list",
            "/model/info",
            "/v1/model/info",
            "/v1/files",
            "/v1/files/f/content",
            "/v1/responses/resp_1",
            "/spend/logs",
            "/spend/keys",
            "/global/spend",
            "/routes",
            "/v1/mcp/server",
            "/mcp",
            "/mcp/",
            "/debug/memory/summary",
            "/test",
            "/models",
            "/v1/models/x",
            "/v1/models/../../docs",
            "/v1/models%3f",
            "/v1//models",
            "/wfbench/callback",
            "/robots.txt",
        )
    ),
    *(
        f"POST {path}"
        for path in (
            "/key/generate",
            "/key/update",
            "/model/new",
            "/model/delete",
            "/config/update",
            "/user/new",
            "/team/new",
            "/chat/completions",
            "/completions",
            "/v1/completions",
            "/v1/embeddings",
            "/v1/images/generations",
            "/v1/rerank",
            "/v1/audio/transcriptions",
            "/v1/files",
            "/v1/batches",
            "/v1/assistants",
            "/v1/threads",
            "/v1/moderations",
            "/engines/m/chat/completions",
            "/openai/deployments/m/chat/completions",
            "/openai/v1/responses",
            "/anthropic/v1/messages",
            "/vertex_ai/x",
            "/bedrock/x",
            "/utils/token_counter",
            "/utils/transform_request",
            "/cache/flushall",
            "/responses",
            "/v1/responses/compact",
            "/v1/responses/input_tokens",
            "/v1/messages/batches",
            "/mcp/tools/call",
            "/v1/search",
            "/v1/vector_stores",
            "/v1/realtime",
            "/rag/query",
            "/guardrails/apply_guardrail",
            "/prompts/test",
            # The allowed paths, in other spellings.
            "//v1/messages",
            "/v1//messages",
            "/v1/messages/",
            "/v1/messages/.",
            "/v1/./messages",
            "/x/../v1/messages",
            "/v1/messages/../../key/generate",
            "/v1/messages/..;/../key/generate",
            "/v1/messages;x",
            "/v1/messages.",
            "/V1/MESSAGES",
            "/v1/Messages",
            "/v1/%6dessages",
            "/v1/messages%2f",
            "/v1/%2e%2e/key/generate",
            "/v1/messages%00",
            "/v1/messages%3fx",
            "/v1/messages%20",
            "/v1\\messages",
            "/v1/messages/count_tokens/",
            "/v1/messages/count_tokens/../x",
            "/v1/chat/completions/../../../docs",
            "*",
            "v1/messages",
            "/%76%31/messages",
        )
    ),
    *(
        f"{method} {path}"
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD", "PROPFIND")
        for path in (MESSAGES, "/key/generate")
    ),
    "GET /v1/messages",
    "GET /v1/responses",
    "POST /v1/models",
    "POST /",
    "OPTIONS *",
    "CONNECT 127.0.0.1:22",
    "CONNECT /v1/messages",
    "get /v1/models",
    "HEAD /v1/models",
    "HEAD /health",
    "GET http://127.0.0.1/key/list",
    "POST http://127.0.0.1:1/key/generate",
    "GET http://proxy/docs",
]


class TestPaths:
    @pytest.mark.parametrize("target", TARGETS)
    def test_nothing_but_the_routes(self, live: Session, provider: Provider, target: str) -> None:
        """No page, no admin route and no other spelling of a route passes a door, with the session's key or without."""
        before = len(provider.seen)
        body = json.dumps({"model": LIVE, **PLAIN[MESSAGES]}).encode()
        for key in (True, False):
            sent = head(live, f"{target} HTTP/1.1", f"content-length: {len(body)}", key=key) + body
            got = exchange(live, sent)
            assert got == b"" or statuses(got)[0] in (400, 403, 404, 405, 501), got[:300]
            assert b"litellm" not in got.lower()
        assert len(provider.seen) == before
        assert live.close().events == ()

    @pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT, "/v1/realtime", "/mcp", "/"])
    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_no_upgrade(self, live: Session, method: str, path: str) -> None:
        """A connection never becomes a websocket, or HTTP/2."""
        for kind in ("websocket",) if path != CHAT else ("websocket", "h2c"):
            more = (
                "connection: Upgrade, HTTP2-Settings",
                f"upgrade: {kind}",
                "http2-settings: AAMAAABk",
                "sec-websocket-key: dGhlIHNhbXBsZQ==",
                "sec-websocket-version: 13",
            )
            got = exchange(
                live, head(live, f"{method} {path} HTTP/1.1", "content-length: 2", *more, last=False) + b"{}"
            )
            assert 101 not in statuses(got)
            assert not statuses(got) or statuses(got)[0] >= 400

    @pytest.mark.parametrize(
        "target", ["http://127.0.0.1:1{}", "http://u:p@evil.test{}?x=/key/generate", "{}?a=..;/docs"]
    )
    def test_where_a_target_points_is_ignored(self, live: Session, provider: Provider, target: str) -> None:
        """Of an absolute target only the path counts: the request goes where every request goes."""
        before = len(provider.seen)
        body = json.dumps({"model": LIVE, **PLAIN[CHAT]}).encode()
        got = exchange(live, request_bytes(live, body, path=target.format(CHAT)))
        assert statuses(got) == [200]
        assert [seen.path for seen in provider.seen[before:]] == [CHAT]
