"""Bodies at a door, over a real LiteLLM: keys that would steer it, and what is no request at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.attack.doors import (
    CHAT,
    FORGED,
    MESSAGES,
    PLAIN,
    RESPONSES,
    ask,
    authorization,
    exchange,
    request_bytes,
    statuses,
)
from tests.gateway.conftest import LIVE, MODEL, UPSTREAM_KEY, USER, OpenSession, Provider, Session

pytestmark = pytest.mark.slow

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
