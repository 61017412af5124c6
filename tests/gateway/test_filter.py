"""What may pass a door."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.gateway.filter import ROUTES, Admitted, Refused, admit, read_claims

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
STEERING = (
    "fallbacks", "num_retries", "max_retries", "api_base", "base_url", "api_key", "mock_response", "mock_tool_calls",
    "metadata", "litellm_metadata", "litellm_params", "custom_llm_provider", "extra_headers", "extra_body", "headers",
    "proxy_server_request", "guardrails", "tags", "cache", "user", "model_list", "timeout", "drop_params",
    "shared_session", "service_tier",
)  # fmt: skip


def admitted(path: str, allowed: tuple[str, ...] = (), /, **body: Any) -> Admitted:
    return admit(ROUTES[path], {"model": "m", **body}, ("m",), allowed)


def refusal(path: str, /, **body: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        admitted(path, **body)
    return caught.value


def said(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [part]}]


class TestKeys:
    @pytest.mark.parametrize("path", ROUTES)
    @pytest.mark.parametrize("key", STEERING)
    def test_what_steers_the_proxy_is_dropped(self, path: str, key: str) -> None:
        """A body key that would defeat the allow-list or the single attempt does not pass, and is counted."""
        result = admitted(path, **{key: "x"})
        assert key not in result.body
        assert key in result.dropped

    @given(st.dictionaries(st.text(max_size=12), st.integers() | st.text(max_size=5), max_size=8))
    def test_every_key_is_kept_or_counted(self, body: dict[str, Any]) -> None:
        """Nothing vanishes without a count, and nothing passes that the route does not list."""
        for path, route in ROUTES.items():
            try:
                result = admitted(path, **{k: v for k, v in body.items() if k != "model"})
            except Refused:
                continue
            assert set(result.body) <= route.keys
            assert set(result.body) | set(result.dropped) == {*body, "model"}

    @pytest.mark.parametrize("body", [None, [], "x", 1])
    def test_only_objects(self, body: Any) -> None:
        """A body that is no object is refused."""
        with pytest.raises(Refused):
            admit(ROUTES[CHAT], body, ("m",))


class TestTools:
    @pytest.mark.parametrize(
        ("path", "tool"),
        [
            (MESSAGES, {"name": "bash", "input_schema": {}}),
            (MESSAGES, {"type": "custom", "name": "bash", "input_schema": {}}),
            (MESSAGES, {"type": "tool_search_tool_regex_20251119", "name": "search"}),
            (MESSAGES, {"type": "bash_20250124", "name": "bash"}),
            (RESPONSES, {"type": "function", "name": "shell", "parameters": {}}),
            (RESPONSES, {"type": "custom", "name": "apply_patch"}),
            (RESPONSES, {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}),
            (CHAT, {"type": "function", "function": {"name": "web_search"}}),
        ],
    )
    def test_the_clients_own_pass(self, path: str, tool: dict[str, Any]) -> None:
        """Tools that the client runs itself pass."""
        assert admitted(path, tools=[tool]).body["tools"] == [tool]

    @pytest.mark.parametrize(
        ("path", "tool", "name"),
        [
            (MESSAGES, {"type": "web_search_20250305", "name": "web_search"}, "web_search"),
            (MESSAGES, {"type": "web_fetch_20250910", "name": "web_fetch"}, "web_fetch"),
            (MESSAGES, {"type": "code_execution_20250825", "name": "code_execution"}, "code_execution"),
            (MESSAGES, {"type": "computer_20250124", "name": "computer"}, "computer"),
            (MESSAGES, {"type": "mcp_toolset", "mcp_server_name": "x"}, "mcp"),
            (RESPONSES, {"type": "web_search_preview_2025_03_11"}, "web_search"),
            (RESPONSES, {"type": "web_search"}, "web_search"),
            (RESPONSES, {"type": "code_interpreter", "container": {}}, "code_interpreter"),
            (RESPONSES, {"type": "mcp", "server_url": "litellm_proxy"}, "mcp"),
            (RESPONSES, {"type": "file_search"}, "file_search"),
            (RESPONSES, {"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}, "web_search"),
            (CHAT, {"type": "web_search_20250305", "name": "web_search"}, "web_search"),
            (CHAT, {"googleSearch": {}}, "malformed_tool"),
            (CHAT, "web_search", "malformed_tool"),
            (MESSAGES, {"type": "newest_tool_20300101"}, "newest_tool"),
        ],
    )
    def test_the_providers_are_refused(self, path: str, tool: Any, name: str) -> None:
        """A tool that the provider runs is refused with a 400, and passes under its name."""
        error = refusal(path, tools=[tool])
        assert (error.status, f"provider_tools: [{name}]" in error.message) == (400, True)
        assert admitted(path, (name,), tools=[tool]).provider_tools == {name}

    @pytest.mark.parametrize(
        ("path", "key", "name"),
        [
            (MESSAGES, "mcp_servers", "mcp"),
            (MESSAGES, "container", "code_execution"),
            (CHAT, "web_search_options", "web_search"),
            (RESPONSES, "previous_response_id", "stored_responses"),
        ],
    )
    def test_body_keys_that_make_the_provider_act(self, path: str, key: str, name: str) -> None:
        """A body key with the same effect is refused, not dropped, and kept where it is allowed."""
        assert refusal(path, **{key: {"x": 1}}).status == 400
        assert key in admitted(path, (name,), **{key: {"x": 1}}).body


class TestSources:
    @pytest.mark.parametrize(
        ("path", "part", "name"),
        [
            (MESSAGES, {"type": "image", "source": {"type": "url", "url": "http://x"}}, "url_source"),
            (MESSAGES, {"type": "document", "source": {"type": "file", "file_id": "f"}}, "file_id"),
            (MESSAGES, {"type": "container_upload", "file_id": "f"}, "file_id"),
            (
                MESSAGES,
                {"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]},
                "url_source",
            ),
            (CHAT, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}, "url_source"),
            (CHAT, {"type": "image_url", "image_url": "https://x/y.png"}, "url_source"),
            (CHAT, {"type": "file", "file": {"file_id": "f"}}, "file_id"),
        ],
    )
    def test_what_the_provider_would_fetch(self, path: str, part: dict[str, Any], name: str) -> None:
        """URLs and stored files in a message are refused, wherever they stand."""
        assert name in refusal(path, messages=said(part)).message

    @pytest.mark.parametrize(
        ("item", "name"),
        [
            ({"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}, "url_source"),
            ({"role": "user", "content": [{"type": "input_file", "file_url": "https://x"}]}, "url_source"),
            ({"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}, "file_id"),
            (
                {"type": "function_call_output", "output": [{"type": "input_image", "image_url": "http://x"}]},
                "url_source",
            ),
            ({"type": "item_reference", "id": "x"}, "stored_responses"),
        ],
    )
    def test_items(self, item: dict[str, Any], name: str) -> None:
        """So are those in the items of the Responses API."""
        assert name in refusal(RESPONSES, input=[item]).message

    def test_what_is_sent_along_passes(self) -> None:
        """Data in the request itself passes, and so does a tool's input that merely looks like a source."""
        parts: list[dict[str, Any]] = [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "tool_use", "id": "t", "name": "n", "input": {"file_id": "f", "image_url": "http://x"}},
        ]
        for part in parts:
            assert admitted(MESSAGES, messages=said(part)).provider_tools == frozenset()


class TestClaims:
    def test_where_clients_say_who_they_are(self) -> None:
        """Session and agent come from the client's headers, else from the metadata; both are clipped."""
        uuid = "0b0e6a3e-0000-4000-8000-000000000000"
        assert read_claims({"x-claude-code-session-id": "s" * 999}, {}) == ("s" * 200, None)
        assert read_claims({}, {"metadata": {"user_id": f"user_x_account__session_{uuid}"}}) == (uuid, None)
        assert read_claims({}, {"metadata": {"user_id": f'{{"session_id":"{uuid}"}}'}}) == (uuid, None)
        assert read_claims({}, {"metadata": 5}) == (None, None)
