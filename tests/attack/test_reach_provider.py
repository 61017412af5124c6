"""What the provider would do for a session, fetch a source or run a tool: nothing that its task does not allow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.attack.doors import CHAT, COUNT, MESSAGES, RESPONSES, ask
from tests.gateway.conftest import LIVE, MODEL, USER, OpenSession, Provider, Session

pytestmark = pytest.mark.slow

AWAY = "https://127.0.0.1:9/x.png"


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
