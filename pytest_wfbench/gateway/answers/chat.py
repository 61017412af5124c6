"""Answers of the OpenAI Chat Completions API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_wfbench.gateway.answers.base import Answer, Asked, event, pieces, without_none

FINISH = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
DONE = b"data: [DONE]\n\n"


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    details = without_none({"cached_tokens": usage.cache_read_input, "cache_write_tokens": usage.cache_write_input})
    total = None if usage.whole_input is None or usage.output is None else usage.whole_input + usage.output
    return without_none(
        {
            "prompt_tokens": usage.whole_input,
            "completion_tokens": usage.output,
            "total_tokens": total,
            "prompt_tokens_details": details or None,
            "completion_tokens_details": without_none({"reasoning_tokens": usage.reasoning_output}) or None,
        }
    )


def _call(tool: Any, arguments: str) -> dict[str, Any]:
    return {"id": tool.id, "type": "function", "function": {"name": tool.name, "arguments": arguments}}


class ChatForm:
    """``/v1/chat/completions``."""

    tool_prefix = "call"

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        """Return the answer's body."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.tools:
            message["tool_calls"] = [_call(tool, tool.arguments) for tool in answer.tools]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[answer.stop]}
        return _envelope(answer, "chat.completion") | {"choices": [choice], "usage": _usage(answer)}

    def stream(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        """Yield the answer's chunks; usage only where the request asked for it."""
        yield _chunk(answer, {"role": "assistant", "content": ""})
        for piece in pieces(answer.text):
            yield _chunk(answer, {"content": piece})
        for index, tool in enumerate(answer.tools):
            yield _chunk(answer, {"tool_calls": [{"index": index, **_call(tool, "")}]})
            for piece in pieces(tool.arguments):
                yield _chunk(answer, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield _chunk(answer, {}, FINISH[answer.stop])
        if asked.stream_usage:
            last = _envelope(answer, "chat.completion.chunk") | {"choices": [], "usage": _usage(answer)}
            yield event(last, named=False)
        yield DONE

    def closes(self, event: bytes) -> bool:
        """Whether a chunk belongs to the end of the answer."""
        return event == DONE or b'"finish_reason":"' in event or b'"choices":[]' in event

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """Return an error's body."""
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def _envelope(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": answer.created, "model": answer.model}


def _chunk(answer: Answer, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event(_envelope(answer, "chat.completion.chunk") | {"choices": [choice]}, named=False)
