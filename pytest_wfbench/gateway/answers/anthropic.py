"""Answers of the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_wfbench.gateway.answers.base import Answer, Asked, event, pieces, without_none


def _input_usage(answer: Answer) -> dict[str, Any]:
    return without_none(
        {
            "input_tokens": answer.usage.ordinary_input,
            "cache_creation_input_tokens": answer.usage.cache_write_input,
            "cache_read_input_tokens": answer.usage.cache_read_input,
            "cache_creation": _creation(answer),
        }
    )


def _creation(answer: Answer) -> dict[str, Any] | None:
    whole, hour = answer.usage.cache_write_input, answer.usage.cache_write_hour
    if whole is None or hour is None:
        return None
    return {"ephemeral_5m_input_tokens": whole - hour, "ephemeral_1h_input_tokens": hour}


def _output_usage(answer: Answer) -> dict[str, Any]:
    return without_none({"output_tokens": answer.usage.output})


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": answer.text}] if answer.text else []
    return text + [
        {"type": "tool_use", "id": tool.id, "name": tool.name, "input": dict(tool.input)} for tool in answer.tools
    ]


class AnthropicForm:
    """``/v1/messages``."""

    tool_prefix = "toolu"

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        """Return the answer's body."""
        return {
            "id": f"msg_{answer.id}",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": _blocks(answer),
            "stop_reason": answer.stop,
            "stop_sequence": None,
            "usage": _input_usage(answer) | _output_usage(answer),
        }

    def stream(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        """Yield the answer's events."""
        message = self.whole(answer, asked) | {
            "content": [],
            "stop_reason": None,
            # The provider's own placeholder: one token of output, whatever is to come.
            "usage": _input_usage(answer) | {"output_tokens": 1},
        }
        yield event({"type": "message_start", "message": message})
        yield event({"type": "ping"})
        for index, block in enumerate(_blocks(answer)):
            yield from _block_events(index, block, answer)
        yield event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": answer.stop, "stop_sequence": None},
                "usage": _output_usage(answer),
            }
        )
        yield event({"type": "message_stop"})

    def closes(self, event: bytes) -> bool:
        """Whether an event belongs to the end of the answer."""
        return event.startswith((b"event: message_delta", b"event: message_stop"))

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """Return an error's body."""
        return {"type": "error", "error": {"type": kind, "message": message}}


def _block_events(index: int, block: dict[str, Any], answer: Answer) -> Iterator[bytes]:
    if block["type"] == "text":
        start, key, kind, content = block | {"text": ""}, "text", "text_delta", block["text"]
    else:
        arguments = next(tool.arguments for tool in answer.tools if tool.id == block["id"])
        start, key, kind, content = block | {"input": {}}, "partial_json", "input_json_delta", arguments
    yield event({"type": "content_block_start", "index": index, "content_block": start})
    for piece in pieces(content):
        yield event({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
    yield event({"type": "content_block_stop", "index": index})
