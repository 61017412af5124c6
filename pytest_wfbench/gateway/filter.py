"""What a client may send through a door: routes, body keys, models and tools. Pure functions of the request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_wfbench.gateway.outward import DEEPEST, PROVIDER_KEYS, TooDeep, provider_side
from pytest_wfbench.wires import CHAT

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

OUTPUT_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


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
    if not isinstance(body.get("stream", False), bool | None):
        raise Refused(400, "invalid_request_error", "stream is neither true nor false")
    used = _provider_side(route, body)
    if refused := sorted(used - set(provider_tools)):
        raise Refused(
            400,
            "invalid_request_error",
            f"{', '.join(refused)}: provider-side tools and sources are a way out to the network and are off here; "
            f"a task may allow them with provider_tools: [{', '.join(refused)}]",
        )
    kept = {key: value for key, value in body.items() if key in route.keys or _allowed_key(key, provider_tools)}
    dropped = tuple(key for key in body if key not in kept)
    return Admitted(kept | _with_usage(route, kept), model, dropped, used)


def _provider_side(route: Route, body: Mapping[str, Any]) -> frozenset[str]:
    try:
        seen = {key: value for key, value in body.items() if key in route.keys or key in PROVIDER_KEYS}
        return frozenset(provider_side(route.wire, seen))
    except TooDeep:
        raise Refused(400, "invalid_request_error", f"the body is nested deeper than {DEEPEST} levels") from None


def _with_usage(route: Route, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stream's options, so that the provider tells its usage whatever the client would have it tell."""
    options = kept.get("stream_options")
    if "stream_options" not in kept and (route.wire != CHAT or not kept.get("stream")):
        return {}
    asked = options if isinstance(options, dict) else {}
    if route.wire == CHAT:
        return {"stream_options": asked | {"include_usage": True}} if kept.get("stream") else {}
    return {"stream_options": {key: value for key, value in asked.items() if key != "include_usage"}}


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return how many output tokens a request allows, over all the answers it asks for; none where it does not say."""
    stated = [body.get(name) for name in OUTPUT_KEYS]
    most = max((value for value in stated if type(value) is int and value > 0), default=None)
    answers = body.get("n")
    return most and most * (answers if type(answers) is int and answers > 0 else 1)


def _allowed_key(key: str, provider_tools: Iterable[str]) -> bool:
    return PROVIDER_KEYS.get(key) in set(provider_tools)


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
    """Return the beginning of a text, as one that can be written down: a header may hold any bytes."""
    return value[:200].encode("utf-8", "replace").decode() if value else None
