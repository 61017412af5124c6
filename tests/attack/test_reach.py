"""What a session may reach of the gateway, of LiteLLM and of the provider, over real doors and a real LiteLLM."""

from __future__ import annotations

import json
import re
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.gateway.supervisor import RunningGateway
from pytest_wfbench.usage.cell import cell_usage
from tests.gateway.conftest import LIVE, MODEL, UPSTREAM_KEY, USER, OpenSession, Provider, Seen, Session

pytestmark = pytest.mark.slow

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
COUNT = "/v1/messages/count_tokens"
PLAIN: dict[str, dict[str, Any]] = {
    MESSAGES: {"max_tokens": 9, "messages": [USER]},
    COUNT: {"messages": [USER]},
    RESPONSES: {"input": "hello"},
    CHAT: {"messages": [USER]},
}
AWAY = "https://127.0.0.1:9/x.png"
FORGED = "a forged answer"


def exchange(session: Session, request: bytes, seconds: float = 20) -> bytes:
    """Send bytes as they are, and return all that comes until the door is silent for a moment after it spoke."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(seconds)
        client.connect(str(session.door.socket))
        with suppress(OSError):
            client.sendall(request)
        got = b""
        with suppress(OSError):
            while chunk := client.recv(1 << 16):
                got += chunk
                client.settimeout(0.4)
        return got


def head(session: Session, line: str, *headers: str, key: bool = True, last: bool = True) -> bytes:
    own = [f"authorization: Bearer {session.door.key}"] if key else []
    own += ["connection: close"] if last else []
    return "\r\n".join([line, "host: x", *own, *headers, "", ""]).encode()


def request_bytes(session: Session, body: bytes, *headers: str, path: str = CHAT) -> bytes:
    return head(session, f"POST {path} HTTP/1.1", f"content-length: {len(body)}", *headers) + body


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.[01] (\d{3})", answer)]


def authorization(seen: Seen) -> str:
    (value,) = [value for name, value in seen.headers.items() if name.lower() == "authorization"]
    return value


@pytest.fixture
def live(open_session: OpenSession) -> Session:
    """A session whose model is at a provider on this machine."""
    return open_session("live", models=(LIVE,))


def ask(session: Session, path: str = CHAT, model: Any = LIVE, **body: Any) -> tuple[int, bytes]:
    status, _, answer = session.send("POST", path, {"model": model, **PLAIN[path], **body})
    return status, answer


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


STEERING: dict[str, Any] = {
    "fallbacks": [{LIVE: ["anthropic/other"]}],
    "context_window_fallbacks": [{LIVE: ["anthropic/other"]}],
    "num_retries": 5,
    "max_retries": 5,
    "api_base": "http://127.0.0.1:9",
    "base_url": "http://127.0.0.1:9",
    "api_key": "sk-of-the-agent",
    "api_version": "9",
    "mock_response": FORGED,
    "mock_tool_calls": [{"id": FORGED}],
    "mock_testing_fallbacks": True,
    "metadata": {"mock_response": FORGED, "tags": ["a"]},
    "litellm_metadata": {"mock_response": FORGED},
    "litellm_params": {"mock_response": FORGED, "api_base": "http://127.0.0.1:9"},
    "litellm_call_id": "forged",
    "litellm_trace_id": "x",
    "litellm_session_id": "x",
    "litellm_logging_obj": {},
    "custom_llm_provider": "ollama",
    "model_info": {"id": "x"},
    "model_list": [{"model_name": "x"}],
    "models": ["a", "b"],
    "extra_headers": {"x-wfbench-call": "forged", "authorization": "Bearer x"},
    "extra_body": {"model": "other"},
    "extra_query": {"a": "b"},
    "headers": {"authorization": "x"},
    "user": "somebody",
    "cache": {"no-store": False},
    "caching": True,
    "prompt_id": "file:///etc/passwd",
    "prompt_variables": {"a": "b"},
    "vector_store_ids": ["v"],
    "guardrails": ["g"],
    "guardrail_config": {},
    "logger_fn": "x",
    "success_callback": ["langfuse"],
    "langfuse_host": "http://127.0.0.1:9",
    "proxy_server_request": {"url": "x", "body": {"model": "other"}},
    "secret_fields": {},
    "user_config": {"model_list": []},
    "router_settings_override": {"num_retries": 5},
    "specific_deployment": True,
    "tags": ["t"],
    "no-log": True,
    "turn_off_message_logging": True,
    "input_cost_per_token": 0,
    "output_cost_per_token": 0,
    "timeout": 0.001,
    "stream_timeout": 1,
    "drop_params": False,
    "allowed_openai_params": ["x"],
    "use_litellm_proxy": True,
    "use_in_pass_through": True,
    "service_tier": "priority",
    "ttl": 1,
    "shared_session": "x",
    "enable_json_schema_validation": True,
    "policies": ["p"],
    "disable_global_guardrails": True,
    "aws_region_name": "x",
    "vertex_credentials": "/etc/passwd",
    "azure_ad_token": "oidc/file//etc/passwd",
    "hf_model_name": "x",
    "organization": "o",
    "ssl_verify": False,
    "mcp_tools": [{"x": 1}],
    "skills": ["s"],
    "bearer_token": "x",
    "_litellm_strip_stream_usage": True,
}


class TestBodies:
    @pytest.mark.parametrize("path", [MESSAGES, CHAT])
    def test_keys_that_steer_the_proxy(self, live: Session, provider: Provider, path: str) -> None:
        """No key steers LiteLLM: one answer, of the model and place asked for; each key is counted."""
        before = len(provider.seen)
        status, answer = ask(live, path, **STEERING)
        used = live.close()
        assert (status, len(provider.seen) - before, len(used.events)) == (200, 1, 1), answer
        sent = provider.seen[-1]
        assert not set(sent.body) & set(STEERING)
        assert FORGED not in answer.decode()
        assert authorization(sent) == f"Bearer {UPSTREAM_KEY}"
        assert sum(used.dropped_keys.values()) == len(STEERING)

    @pytest.mark.parametrize(
        "key", ["api_base", "mock_response", "extra_headers", "extra_body", "metadata", "fallbacks"]
    )
    def test_keys_that_steer_are_nothing_below(self, live: Session, provider: Provider, key: str) -> None:
        """The same keys inside a message, a tool or an option do not act either."""
        before = len(provider.seen)
        inside = {key: STEERING[key]}
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, **inside}, **inside}
        _, answer = ask(
            live, messages=[USER | inside], tools=[tool], stop=None, response_format={"type": "text", **inside}
        )
        assert FORGED not in answer.decode()
        for seen in provider.seen[before:]:
            assert (seen.path, seen.body["model"], authorization(seen)) == (CHAT, "gpt-live", f"Bearer {UPSTREAM_KEY}")
        assert len(live.close().events) == 1

    @pytest.mark.parametrize(
        "kind",
        [
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=B",
            "application/x-protobuf",
            "text/plain",
            "application/json; charset=utf-16",
        ],
    )
    @pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
    def test_a_body_by_another_name(self, open_session: OpenSession, kind: str, path: str) -> None:
        """A body that its header calls a form is read as the JSON it is: no text in it turns into keys of the proxy."""
        session = open_session("claude")
        smuggled = f"&model=anthropic%2Fclaude-scripted&mock_response={FORGED}&messages=[]&input=x&max_tokens=9&api_base=http://127.0.0.1:9&"
        text = f'{smuggled}\r\n--B\r\nContent-Disposition: form-data; name="mock_response"\r\n\r\n{FORGED}\r\n--B--\r\n'
        said = {"input": text} if path == RESPONSES else {"messages": [{"role": "user", "content": text}]}
        body = {"model": MODEL, **PLAIN[path], **said}
        status, _, answer = session.send("POST", path, body, headers={"content-type": kind})
        (event,) = session.close().events
        assert (status, event.status, event.answered_model) == (200, "success", "claude-scripted"), answer
        assert FORGED not in answer.decode()

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"null",
            b"[]",
            b'"x"',
            b"{",
            b"{}{}",
            b"\xff\xfe\x00",
            b'{"model": "\xff"}',
            b"\x1f\x8b\x08",
            b'{"model": NaN}',
            b'{"model": "M", "messages": [], "temperature": NaN}',
            b'{"model": "M", "messages": [], "temperature": -Infinity}',
            b'{"model": "M", "max_tokens": ' + b"9" * 6000 + b"}",
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b'{"model": "M", "messages": ' + b"[" * 600 + b"]" * 600 + b"}",
            b'{"model": "M", "messages": [' + b'{"content": [' * 300 + b"]}" * 300 + b"]}",
            b'{"model": "M", "tools": ' + b'[{"type": "namespace", "tools": ' * 200 + b"[]" + b"}]" * 200 + b"}",
            b'{"model": "M", "messages": [], "stream": "yes"}',
            b'{"model": "M", "messages": [], "stream": 1}',
        ],
        ids=range(20),
    )
    def test_what_is_no_request(self, live: Session, provider: Provider, body: bytes) -> None:
        """What is no JSON object, or one nested beyond reason, is refused by the door, and it goes on working."""
        before = len(provider.seen)
        got = exchange(live, request_bytes(live, body.replace(b'"M"', json.dumps(LIVE).encode())))
        assert statuses(got)[0] in (400, 403), got[:300]
        assert len(provider.seen) == before
        assert ask(live)[0] == 200
        assert len(live.close().events) == 1

    def test_keys_said_twice(self, live: Session, provider: Provider) -> None:
        """Of a key that stands twice, what the door checked is what goes on."""
        before = len(provider.seen)
        named = f'"model": "{LIVE}"'
        plain = '"messages": [{"role": "user", "content": "hello"}]'
        tools = '"tools": [{"type": "web_search"}]'
        for body, good in (
            (f'{{"model": "anthropic/x", {named}, {plain}}}', True),
            (f'{{{named}, "model": "anthropic/x", {plain}}}', False),
            (f'{{{named}, {plain}, {tools}, "tools": []}}', True),
            (f'{{{named}, {plain}, "tools": [], {tools}}}', False),
        ):
            got = exchange(live, request_bytes(live, body.encode()))
            assert (statuses(got) == [200]) is good
        assert [(seen.body["model"], seen.body.get("tools", [])) for seen in provider.seen[before:]] == [
            ("gpt-live", [])
        ] * 2

    def test_invented_names_are_bounded(self, live: Session) -> None:
        """However many keys a client invents, what is kept of their names is small."""
        for turn in range(3):
            invented: dict[str, Any] = {f"key{turn}-{n}": 1 for n in range(99)}
            invented |= {f"{'k' * 200}{n * 1000 + turn}" if n else "x" * 10**6: 1 for n in range(500)}
            assert ask(live, **invented)[0] == 200
        dropped = live.close().dropped_keys
        assert len(dropped) <= 51
        assert max(map(len, dropped)) <= 60
        assert sum(dropped.values()) == 3 * 599


def in_message(part: Any) -> list[tuple[str, dict[str, Any]]]:
    """Bodies that hold a content part at every place of every wire format where one may stand."""
    said = [{"role": "user", "content": [part]}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": [part]}
    document = {"type": "document", "source": {"type": "content", "content": [part]}}
    return [
        (MESSAGES, {"messages": said}),
        (MESSAGES, {"messages": [{"role": "user", "content": part}]}),
        (MESSAGES, {"messages": [{"role": "user", "content": [result]}]}),
        (MESSAGES, {"messages": [{"role": "user", "content": [{**result, "content": part}]}]}),
        (MESSAGES, {"messages": [{"role": "user", "content": [document]}]}),
        (MESSAGES, {"messages": [{"role": "user", "content": [{**result, "content": [document]}]}]}),
        (MESSAGES, {"system": [part]}),
        (COUNT, {"messages": said}),
        (CHAT, {"messages": said}),
        (CHAT, {"messages": [{"role": "user", "content": part}]}),
        (CHAT, {"messages": [{"role": "tool", "tool_call_id": "t", "content": [part]}]}),
        (CHAT, {"messages": [{"role": "system", "content": [part]}, USER]}),
        (CHAT, {"messages": [USER | {"provider_specific_fields": {"web_search_results": [part]}}]}),
        (CHAT, {"messages": [USER | {"thinking_blocks": [part]}]}),
        (RESPONSES, {"input": said}),
        (RESPONSES, {"input": [part]}),
        (RESPONSES, {"input": part}),
        (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c", "output": [part]}]}),
        (RESPONSES, {"input": [{"type": "computer_call_output", "call_id": "c", "output": part}]}),
        (RESPONSES, {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": [{"content": [part]}]}]}),
    ]


SOURCES = [
    {"type": "image", "source": {"type": "url", "url": AWAY}},
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "image", "source": {"url": AWAY}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "http://127.0.0.1:9/"}},
    {"type": "document", "source": {"type": "base64", "url": AWAY, "data": "aGk="}},
    {"type": "image_url", "image_url": {"url": AWAY}},
    {"type": "image_url", "image_url": "file:///etc/passwd"},
    {"type": "image_url", "image_url": {"url": " data:image/png;base64,aGk="}},
    {"type": "image_url", "image_url": ["data:image/png;base64,aGk=", AWAY]},
    {"type": "input_image", "image_url": AWAY.upper()},
    {"type": "input_image", "url": AWAY},
    {"type": "input_image", "file_id": "file_1"},
    {"type": "input_file", "file_url": "http://127.0.0.1:9/"},
    {"type": "input_file", "file_id": "file_1"},
    {"type": "input_file", "file_data": "http://127.0.0.1:9/"},
    {"type": "input_file", "file_data": "file:///etc/passwd"},
    {"type": "file", "file": {"file_id": "https://127.0.0.1:9/"}},
    {"type": "file", "file": {"file_data": "https://127.0.0.1:9/", "filename": "x.pdf"}},
    {"type": "file", "file": {"file_data": "gs://bucket/x"}},
    {"type": "video_url", "video_url": {"url": AWAY}},
    {"type": "audio_url", "audio_url": AWAY},
    {"type": "input_audio", "input_audio": {"data": "https://127.0.0.1:9/", "format": "wav"}},
    {"type": "document", "document_url": AWAY},
    {"type": "container_upload", "file_id": "f"},
    {"type": "container_upload"},
    {"type": "item_reference", "id": "x"},
    {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
    {"type": "mcp_tool_use", "server_name": "s", "name": "n", "input": {}},
    {"type": "tool_search_output", "tools": [{"type": "web_search"}]},
    {"type": "additional_tools", "tools": [{"type": "mcp", "server_url": "https://x"}]},
    {
        "type": "tool_use",
        "id": "t",
        "name": "n",
        "input": {},
        "content": [{"type": "image", "source": {"type": "url", "url": "u"}}],
    },
]

PROVIDER_TOOLS: list[Any] = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "web_search_20260209", "name": "x"},
    {"type": "web_fetch_20250910", "name": "web_fetch"},
    {"type": "code_execution_20250825", "name": "code_execution"},
    {"type": "computer_20250124", "name": "computer"},
    {"type": "mcp_toolset", "mcp_server_name": "x"},
    {"type": "advisor_20260301", "name": "advisor"},
    {"type": "url", "url": "https://x", "name": "mcp"},
    {"type": "web_search"},
    {"type": "web_search_preview"},
    {"type": "web_search_preview_2025_03_11"},
    {"type": "mcp", "server_label": "s", "server_url": "litellm_proxy/mcp/x", "require_approval": "never"},
    {"type": "mcp", "server_label": "s", "connector_id": "connector_gmail"},
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "image_generation"},
    {"type": "computer_use_preview"},
    {"type": "shell", "environment": {"type": "container_auto"}},
    {"googleSearch": {}},
    {"google_maps": {}},
    "web_search",
    {"type": ""},
    {"type": None},
    {"type": 0},
    {"type": ["function"]},
    {"type": {"a": 1}},
    [{"type": "web_search"}],
    {"type": "Function"},
    {"type": "WEB_SEARCH"},
    {"type": "web_search\n"},
    {"type": "function\n"},
    {"name": "web_search"},
    {
        "type": "namespace",
        "name": "n",
        "tools": [{"type": "namespace", "name": "m", "tools": [{"type": "web_search"}]}],
    },
    {"type": "namespace", "name": "n", "tools": {"type": "web_search"}},
]


def refused(session: Session, provider: Provider, path: str, body: dict[str, Any]) -> None:
    before = len(provider.seen)
    status, answer = ask(session, path, **body)
    assert (status, len(provider.seen)) == (400, before), (path, body, answer)
    assert b"provider_tools" in answer, answer


class TestProvidersSide:
    @pytest.mark.parametrize("part", SOURCES, ids=range(len(SOURCES)))
    def test_sources(self, live: Session, provider: Provider, part: dict[str, Any]) -> None:
        """Nothing that LiteLLM or the provider would fetch passes, at no place of any wire format."""
        for path, body in in_message(part):
            refused(live, provider, path, body)
        assert live.close().events == ()

    @pytest.mark.parametrize("tool", PROVIDER_TOOLS, ids=range(len(PROVIDER_TOOLS)))
    @pytest.mark.parametrize("path", [MESSAGES, COUNT, RESPONSES, CHAT])
    def test_tools(self, live: Session, provider: Provider, path: str, tool: Any) -> None:
        """No tool that the provider runs passes, alone, behind a harmless one, or as the one to be chosen."""
        own = {"name": "f", "input_schema": {"type": "object"}}
        refused(live, provider, path, {"tools": [tool]})
        refused(live, provider, path, {"tools": [own, tool]})
        refused(live, provider, path, {"tools": {"0": tool}})
        refused(live, provider, path, {"tool_choice": {"type": "allowed_tools", "tools": [tool]}})
        assert live.close().events == ()

    @pytest.mark.parametrize(
        "tool",
        [
            {"type": "custom", "name": "web_search"},
            {"type": "function", "name": "web_search"},
            {"type": "bash_20250124", "name": "web_search"},
            {"type": "memory", "name": "web_search_20250305"},
        ],
        ids=range(4),
    )
    def test_a_tool_that_litellm_takes_for_the_providers(self, live: Session, provider: Provider, tool: Any) -> None:
        """A harmless type does not help a tool that LiteLLM knows by its name and turns into the provider's search."""
        refused(live, provider, MESSAGES, {"tools": [tool]})

    @pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
    @pytest.mark.parametrize(
        "keys",
        [
            {"mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]},
            {"container": "c"},
            {"container": {"skills": []}},
            {"web_search_options": {}},
            {"web_search_options": {"search_context_size": "low"}},
            {"previous_response_id": "r"},
            {"conversation": "c"},
            {"prompt": {"id": "p"}},
            {"tool_choice": {"type": "web_search_preview"}},
            {"tool_choice": {"type": "mcp", "server_label": "x"}},
            {"tool_choice": {"type": "file_search"}},
        ],
        ids=range(11),
    )
    def test_body_keys(self, live: Session, provider: Provider, path: str, keys: dict[str, Any]) -> None:
        """Keys of a body that make the provider act are refused on every route."""
        refused(live, provider, path, keys)

    def test_what_agents_send_passes(self, live: Session, open_session: OpenSession) -> None:
        """Data sent along, tools of the client, and texts and tool inputs that merely speak of URLs pass."""
        look = {"file_id": "f", "image_url": AWAY, "url": AWAY, "tools": ["web_search"], "type": "url"}
        schema = {"type": "object", "properties": {"url": {"type": "string"}, "type": {"enum": ["web_search"]}}}
        parts: list[dict[str, Any]] = [
            {"type": "text", "text": f"see {AWAY} and file:///etc/passwd", "citations": [{"url": AWAY}]},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "http://x is a URL"}},
        ]
        used = [{"type": "tool_use", "id": "t", "name": "Fetch", "input": look}]
        found = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": json.dumps(look)}]}]
        history = [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": used},
            {"role": "user", "content": found},
        ]
        tools = [{"name": "web_search_mine", "input_schema": schema}, {"name": "WebSearch", "input_schema": schema}]
        body = {"messages": history, "tools": tools, "tool_choice": {"type": "auto"}, "metadata": {"user_id": AWAY}}
        session = open_session("claude", cell="fine")
        assert ask(session, MESSAGES, MODEL, messages=[history[0]], tools=tools)[0] == 200
        assert ask(live, MESSAGES, **body)[0] == 200
        calls = [{"id": "t", "type": "function", "function": {"name": "f", "arguments": json.dumps(look)}}]
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        said = [
            {"role": "user", "content": [image, {"type": "text", "text": AWAY}]},
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "t", "content": AWAY},
        ]
        assert (
            ask(
                live, CHAT, messages=said, tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}]
            )[0]
            == 200
        )

    def test_what_a_task_allows(self, open_session: OpenSession, provider: Provider) -> None:
        """A task that allows one kind has that kind, whole, and no other."""
        session = open_session("live", models=(LIVE,), provider_tools=("url_source",))
        picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": AWAY}}]}]
        assert ask(session, CHAT, messages=picture)[0] == 200
        assert AWAY in json.dumps(provider.seen[-1].body)
        refused(
            session,
            provider,
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        )


class TestModels:
    @pytest.mark.parametrize("path", [MESSAGES, COUNT, RESPONSES, CHAT])
    def test_no_other_model(self, live: Session, provider: Provider, path: str) -> None:
        """No alias, prefix, wildcard, case or list is the subject's model, on any route."""
        before = len(provider.seen)
        names: list[Any] = [
            "gpt-live",
            "openai/openai/gpt-live",
            "openai/gpt-Live",
            "OPENAI/gpt-live",
            "openai/*",
            "*",
            "",
            " " + LIVE,
            LIVE + " ",
            LIVE + "\n",
            LIVE + "\0",
            "anthropic/gpt-live",
            "wfbench/self-test",
            MODEL,
            "openai/gpt-live-mini",
            "openai/responses/gpt-live",
            "openai/chat/gpt-live",
            [LIVE],
            {"a": LIVE},
            None,
            0,
            True,
            f"{LIVE},openai/gpt-4o",
            "litellm_proxy/gpt-live",
            "openai/../x",
        ]
        for name in names:
            status, answer = ask(live, path, model=name)
            assert status == 403, (name, answer)
        assert len(provider.seen) == before
        assert live.close().events == ()


class TestKeys:
    def test_no_other_key(self, open_session: OpenSession, provider: Provider, gateway: RunningGateway) -> None:
        """Keys of other sessions, cells and times, near misses, and none at all do not open a door."""
        before = len(provider.seen)
        mine = open_session("live", models=(LIVE,), cell="a", session="work")
        later = open_session("live", models=(LIVE,), cell="a", session="judge")
        other = open_session("live", models=(LIVE,), cell="b", session="work")
        twin = open_session("live", models=(LIVE,), cell="a", session="work")
        dead = open_session("live", models=(LIVE,), cell="a", session="work")
        dead.close()
        key = mine.door.key
        wrong = [
            later.door.key,
            other.door.key,
            twin.door.key,
            dead.door.key,
            key[:-1],
            key + "0",
            key.upper(),
            f"x{key}",
            key.replace("sk-wf-", "sk-wf-f"),
            "",
            "Bearer",
            "é",
            UPSTREAM_KEY,
            "sk-1234",
            f"{key},{key}",
            "null",
        ]
        for one in wrong:
            for name in ("authorization", "x-api-key", "api-key", "x-litellm-api-key", "cookie", "proxy-authorization"):
                value = f"Bearer {one}" if name == "authorization" else one
                body = json.dumps({"model": LIVE, **PLAIN[CHAT]}).encode()
                length = f"content-length: {len(body)}"
                sent = head(mine, f"POST {CHAT}?key={key} HTTP/1.1", f"{name}: {value}", length, key=False) + body
                assert statuses(exchange(mine, sent))[0] in (400, 403), (one, name)
        assert len(provider.seen) == before
        assert mine.close().events == ()

    def test_an_expired_key(self, open_session: OpenSession, provider: Provider) -> None:
        """A key does not outlive its session's time, nor can the time in it be changed."""
        session = open_session("live", models=(LIVE,), seconds=0)
        time.sleep(1.2)
        expiry, signature = session.door.key.removeprefix("sk-wf-").split("-")
        later = f"sk-wf-{int(expiry, 16) + 9999:x}-{signature}"
        body = {"model": LIVE, **PLAIN[CHAT]}
        assert [session.send("POST", CHAT, body, key=key)[0] for key in (session.door.key, later)] == [403, 403]

    def test_doors_are_private(self, gateway: RunningGateway, live: Session) -> None:
        """Only a sandbox's user can open a door, nobody can list the doors, and what else listens is ours alone."""
        door = live.door.socket
        assert door.stat().st_mode & 0o777 == 0o600
        assert door.parent.stat().st_mode & 0o044 == 0
        private = door.parents[1] / "p"
        assert private.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in private.iterdir()} >= {"control", "tap", "proxy"}


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


class TestProxy:
    def test_it_knows_nothing_of_the_host(self, gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
        """LiteLLM starts with no variable of the caller's, in a private directory, and holds no provider's key."""
        pid = gateway.status().pid
        assert pid is not None
        process = Path(f"/proc/{pid}")
        try:
            names = {
                entry.partition("=")[0] for entry in (process / "environ").read_bytes().decode().split("\0") if entry
            }
            place = (process / "cwd").resolve()
            files = [str(path.readlink()) for path in (process / "fd").iterdir()]
        except PermissionError:
            pytest.skip("only root can look into a process that closed itself")
        assert names <= {
            "PATH",
            "LANG",
            "LC_ALL",
            "LD_LIBRARY_PATH",
            "HOME",
            "PYTHONPATH",
            "PYTHONSAFEPATH",
            "LC_CTYPE",
        }
        assert place.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in place.iterdir()} <= {
            "config.yaml",
            "wfbench_hooks.py",
            "proxy.log",
            "proxy",
            "tap",
            "control",
            "__pycache__",
            ".cache",
            ".config",
            ".litellm_cache",
        }
        for path in place.rglob("*"):
            if path.is_file():
                text = path.read_text(errors="replace")
                assert UPSTREAM_KEY not in text
                assert "sk-" not in text.replace("sk-wf-", "") or path.suffix in (".py", ".pyc"), text
        assert not [name for name in files if name.startswith("/") and not name.startswith(("/dev/", str(place)))]

    @pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
    def test_its_errors_tell_nothing(self, live: Session, path: str) -> None:
        """An error that LiteLLM words holds no key of ours and no path of the host."""
        odd: list[dict[str, Any]] = [
            {"messages": "no list", "input": 5},
            {"messages": [{"role": 5}], "input": [{"role": 5}]},
            {"tools": [{"name": "f", "input_schema": 5}]},
            {"temperature": {"a": 1}},
            {"messages": [[]], "input": [[]]},
            {"max_tokens": "x", "max_output_tokens": "x"},
            {"messages": [{"role": "user", "content": "fail"}], "input": "fail"},
        ]
        for body in odd:
            _, answer = ask(live, path, **body)
            text = answer.decode()
            assert not re.search(r"sk-[0-9a-f]{16}", text), text
            assert UPSTREAM_KEY not in text
            assert "/p/" not in text
            assert "Traceback" not in text, text
        assert not any("sk-" in (event.error_message or "") for event in live.close().events)
