"""What a client may send through a door: routes, body keys, models and tools. Pure functions of the request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

COMMON = frozenset({"model", "stream", "tools", "tool_choice", "temperature", "top_p"})
MESSAGES_KEYS = frozenset(
    {
        *COMMON, "messages", "system", "max_tokens", "top_k", "stop_sequences", "thinking", "output_config",
        "output_format", "cache_control", "context_management",
    }
)  # fmt: skip
COUNT_KEYS = frozenset({"model", "messages", "system", "tools", "tool_choice", "thinking"})
RESPONSES_KEYS = frozenset(
    {
        *COMMON, "input", "instructions", "parallel_tool_calls", "reasoning", "text", "max_output_tokens", "include",
        "store", "truncation", "prompt_cache_key", "stream_options", "max_tool_calls", "top_logprobs",
    }
)  # fmt: skip
CHAT_KEYS = frozenset(
    {
        *COMMON, "messages", "max_tokens", "max_completion_tokens", "stop", "seed", "response_format", "n",
        "reasoning_effort", "verbosity", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs",
        "top_logprobs", "parallel_tool_calls", "stream_options", "prompt_cache_key", "prediction", "functions",
        "function_call",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Route:
    """One way in: the wire format it speaks and the body keys it takes."""

    wire: Literal["anthropic-messages", "openai-responses", "openai-chat"]
    keys: frozenset[str]
    kind: Literal["generate", "count"] = "generate"


ROUTES: Mapping[str, Route] = {
    "/v1/messages": Route("anthropic-messages", MESSAGES_KEYS),
    "/v1/messages/count_tokens": Route("anthropic-messages", COUNT_KEYS, "count"),
    "/v1/responses": Route("openai-responses", RESPONSES_KEYS),
    "/v1/chat/completions": Route("openai-chat", CHAT_KEYS),
}

# Tools that the client runs itself, or that only search among its own tools.
HARMLESS_TOOLS = re.compile(
    r"(function|custom|namespace|tool_search(_.*)?|bash|text_editor|memory|local_shell|apply_patch)\Z"
)
TOOL_VERSION = re.compile(r"_(20\d{6}|preview)(_\d+)*\Z|_20\d\d_\d\d_\d\d\Z")
# Body keys that ask the provider to act, and what they stand for in `provider_tools`.
PROVIDER_KEYS: Mapping[str, str] = {
    "mcp_servers": "mcp",
    "container": "code_execution",
    "web_search_options": "web_search",
    "previous_response_id": "stored_responses",
    "conversation": "stored_responses",
    "prompt": "stored_prompts",
}


class Refused(Exception):
    """A request that the door answers itself, with ``status`` and an error ``kind`` of the provider's vocabulary."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


@dataclass(frozen=True)
class Admitted:
    """A request body as it may go on, and the keys it lost."""

    body: dict[str, Any]
    model: str
    dropped: tuple[str, ...] = ()
    provider_tools: frozenset[str] = field(default_factory=frozenset)


def admit(route: Route, body: Any, models: Iterable[str], provider_tools: Iterable[str] = ()) -> Admitted:
    """Check a body against a session's allow-lists.

    Raises:
        Refused: for a model or a provider-side tool that the session may not use, or a body that is no JSON object.
    """
    if not isinstance(body, dict):
        raise Refused(400, "invalid_request_error", "the body is not a JSON object")
    model = body.get("model")
    if not isinstance(model, str) or model not in models:
        allowed = ", ".join(sorted(models)) or "none"
        raise Refused(403, "permission_error", f"model {model!r} is not among this session's models: {allowed}")
    used = frozenset(provider_side(route.wire, body))
    if refused := sorted(used - set(provider_tools)):
        raise Refused(
            400,
            "invalid_request_error",
            f"{', '.join(refused)}: provider-side tools and sources are a way out to the network and are off here; "
            f"a task may allow them with provider_tools: [{', '.join(refused)}]",
        )
    kept = {key: value for key, value in body.items() if key in route.keys or _allowed_key(key, provider_tools)}
    return Admitted(kept, model, tuple(key for key in body if key not in kept), used)


def _allowed_key(key: str, provider_tools: Iterable[str]) -> bool:
    return PROVIDER_KEYS.get(key) in set(provider_tools)


def provider_side(wire: str, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield a name, as `provider_tools` takes it, for all in a body that makes the provider act or fetch."""
    for key, name in PROVIDER_KEYS.items():
        if body.get(key):
            yield name
    yield from _tools(body.get("tools"))
    for part in PARTS[wire](body):
        yield from _sources(part)


def _tools(tools: Any) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or (tool.get("type") is None and not _is_client_tool(tool)):
            yield "malformed_tool"
            continue
        name = TOOL_VERSION.sub("", str(tool.get("type") or "custom"))
        if name == "namespace":
            yield from _tools(tool.get("tools"))
        elif not HARMLESS_TOOLS.match(name):
            yield name.removesuffix("_toolset")


def _is_client_tool(tool: Mapping[str, Any]) -> bool:
    """Whether a tool without a type is one as Anthropic's clients define it."""
    return isinstance(tool.get("name"), str) and "input_schema" in tool


def _sources(part: Mapping[str, Any]) -> Iterator[str]:
    source = part.get("source")
    if isinstance(source, dict) and source.get("type") not in ("base64", "text", "content"):
        yield "file_id" if source.get("type") == "file" else "url_source"
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if url is not None and not str(url).startswith("data:"):
        yield "url_source"
    if part.get("file_url"):
        yield "url_source"
    file = part.get("file")
    stored = isinstance(file, dict) and file.get("file_id")
    if stored or part.get("file_id") or part.get("type") == "container_upload":
        yield "file_id"
    if part.get("type") == "item_reference":
        yield "stored_responses"
    if part.get("type") in ("mcp_approval_response", "mcp_call", "mcp_list_tools"):
        yield "mcp"


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _nested(parts: Any) -> Iterator[Mapping[str, Any]]:
    """Yield content parts, and those inside tool results and documents; never what stands in a tool's input."""
    for part in _objects(parts):
        yield part
        yield from _nested(part.get("content"))
        source = part.get("source")
        yield from _nested(source.get("content")) if isinstance(source, dict) else ()


def _message_parts(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _nested(body.get("system"))
    for message in _objects(body.get("messages")):
        yield from _nested(message.get("content"))


def _input_parts(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for item in _objects(body.get("input")):
        yield item
        yield from _nested(item.get("content"))
        yield from _nested(item.get("output"))


PARTS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]]] = {
    ANTHROPIC: _message_parts,
    CHAT: _message_parts,
    RESPONSES: _input_parts,
}


def read_claims(headers: Mapping[str, str], body: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the session and agent id that a client states, clipped; never believed."""
    session = headers.get("x-claude-code-session-id") or headers.get("session_id") or _metadata_session(body)
    return _clip(session), _clip(headers.get("x-claude-code-agent-id"))


def _metadata_session(body: Mapping[str, Any]) -> str | None:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    match = re.search(r"session_(?:id\W+)?([0-9a-fA-F-]{36})", user[:1000]) if isinstance(user, str) else None
    return match[1] if match else None


def _clip(value: str | None) -> str | None:
    return value[:200] if value else None
