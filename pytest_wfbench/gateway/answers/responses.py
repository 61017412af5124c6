"""Answers of the OpenAI Responses API."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse, event, pieces, without_none

INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    details = without_none({"cached_tokens": usage.cache_read_input, "cache_write_tokens": usage.cache_write_input})
    total = None if usage.whole_input is None or usage.output is None else usage.whole_input + usage.output
    return without_none(
        {
            "input_tokens": usage.whole_input,
            "input_tokens_details": details or None,
            "output_tokens": usage.output,
            "output_tokens_details": without_none({"reasoning_tokens": usage.reasoning_output}) or None,
            "total_tokens": total,
        }
    )


def _freeform(tool: ToolUse, asked: Asked) -> str | None:
    """Return the plain text of a call to a tool that was offered as free-form."""
    offered = any(other.get("name") == tool.name and other.get("type") == "custom" for other in asked.tools)
    text = tool.input.get("input")
    return text if offered and isinstance(text, str) else None


def _namespace(tool: ToolUse, asked: Asked) -> str | None:
    """Return the namespace that a tool was offered in, which a call to it must name."""
    spaces = (other for other in asked.tools if other.get("type") == "namespace")
    holding = (space for space in spaces if any(inner.get("name") == tool.name for inner in space.get("tools") or ()))
    return next((str(space.get("name")) for space in holding), None)


def _tool_item(tool: ToolUse, asked: Asked) -> dict[str, Any]:
    freeform = _freeform(tool, asked)
    common: dict[str, Any] = {"id": f"item_{tool.id}", "call_id": tool.id, "name": tool.name, "status": "completed"}
    common |= without_none({"namespace": _namespace(tool, asked)})
    if freeform is not None:
        return common | {"type": "custom_tool_call", "input": freeform}
    return common | {"type": "function_call", "arguments": tool.arguments}


def _items(answer: Answer, asked: Asked) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}]
    message = {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    return ([message] if answer.text else []) + [_tool_item(tool, asked) for tool in answer.tools]


class ResponsesForm:
    """``/v1/responses``."""

    tool_prefix = "call"

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]:
        """Return the answer's body."""
        reason = INCOMPLETE.get(answer.stop)
        return {
            "id": f"resp_{answer.id}",
            "object": "response",
            "created_at": answer.created,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "model": answer.model,
            "output": _items(answer, asked),
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [dict(tool) for tool in asked.tools],
            "top_p": 1.0,
            "usage": _usage(answer),
        }

    def stream(self, answer: Answer, asked: Asked) -> Iterator[bytes]:
        """Yield the answer's events."""
        numbers = count()
        for payload in _payloads(self.whole(answer, asked)):
            yield event(payload | {"sequence_number": next(numbers)})

    def closes(self, event: bytes) -> bool:
        """Whether an event belongs to the end of the answer."""
        return event.startswith((b"event: response.completed", b"event: response.incomplete"))

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """Return an error's body."""
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def _payloads(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = whole | {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        yield from _item_payloads(index, item)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _item_payloads(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    place = {"output_index": index, "item_id": item["id"]}
    empty = {"message": "content", "function_call": "arguments", "custom_tool_call": "input"}[item["type"]]
    opened = item | {"status": "in_progress", empty: type(item[empty])()}
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    yield from (_text_payloads if item["type"] == "message" else _argument_payloads)(place, item)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text_payloads(place: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    place = place | {"content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _argument_payloads(place: dict[str, Any], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind, key = {
        "function_call": ("response.function_call_arguments", "arguments"),
        "custom_tool_call": ("response.custom_tool_call_input", "input"),
    }[item["type"]]
    for piece in pieces(item[key]):
        yield {"type": f"{kind}.delta", **place, "delta": piece}
    yield {"type": f"{kind}.done", **place, key: item[key]}
