"""The event: what is known about one request to a provider. ``usage.jsonl`` holds one a line."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Wire = Literal["anthropic-messages", "openai-responses", "openai-chat", "litellm"]
Conversation = Literal["main", "title", "subagent"]
EventStatus = Literal["success", "failure", "cancelled", "cut"]


class Message(BaseModel):
    """Base of everything on the control socket and in ``usage.jsonl``."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Claims(Message):
    """What a client said of itself; never believed."""

    session_id: str | None = None
    agent_id: str | None = None


class Event(Message):
    """One upstream request, written when it ended. Times are UTC, ISO 8601; ``ttft_ms`` in milliseconds.

    ``max_output`` is the most output tokens that the request allows, ``body_bytes`` its size: what a budget goes by
    where the answer does not tell its usage.
    """

    schema_version: Literal[1] = 1
    kind: Literal["generate", "count"] = "generate"
    conversation: Conversation = "main"
    sweep_id: str
    cell_id: str
    session: str
    call_id: str
    attempt: int = 1
    status: EventStatus
    requested_model: str | None = None
    answered_model: str | None = None
    provider: str | None = None
    wire: Wire
    response_id: str | None = None
    started_at: str
    completed_at: str
    ttft_ms: float | None = None
    http_status: int | None = None
    error_class: str | None = None
    error_message: str | None = None
    claims: Claims = Claims()
    usage_source: Literal["wire", "litellm"] = "wire"
    native_usage: dict[str, Any] | None = None
    max_output: int | None = None
    body_bytes: int | None = None
