"""What an answer said: its text, its tool calls and why it stopped, out of a provider's bytes in each wire format."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_wfbench.gateway.cassette import Stop, Tool
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES, read_object, stream_events

# What the reader of cassettes takes: deeper values and larger numbers are kept as the text they came in.
DEEPEST, DIGITS = 40, 18
STOPS: Mapping[str, Stop] = {
    "tool_use": "tool_use", "tool_calls": "tool_use", "function_call": "tool_use",
    "max_tokens": "max_tokens", "model_context_window_exceeded": "max_tokens", "length": "max_tokens",
    "max_output_tokens": "max_tokens", "refusal": "refusal", "content_filter": "refusal",
}  # fmt: skip
PIECES = frozenset(
    f"response.{kind}.delta" for kind in ("output_text", "refusal", "function_call_arguments", "custom_tool_call_input")
)
Paths = Mapping[str, tuple[str, ...]]
USAGE_PATHS: Mapping[str, Paths] = {
    ANTHROPIC: {
        "ordinary_input": ("input_tokens",),
        "cache_read_input": ("cache_read_input_tokens",),
        "cache_write_input": ("cache_creation_input_tokens",),
        "cache_write_hour": ("cache_creation", "ephemeral_1h_input_tokens"),
        "output": ("output_tokens",),
    },
    CHAT: {
        "total_input": ("prompt_tokens",),
        "cache_read_input": ("prompt_tokens_details", "cached_tokens"),
        "cache_write_input": ("prompt_tokens_details", "cache_write_tokens"),
        "output": ("completion_tokens",),
        "reasoning_output": ("completion_tokens_details", "reasoning_tokens"),
    },
    RESPONSES: {
        "total_input": ("input_tokens",),
        "cache_read_input": ("input_tokens_details", "cached_tokens"),
        "cache_write_input": ("input_tokens_details", "cache_write_tokens"),
        "output": ("output_tokens",),
        "reasoning_output": ("output_tokens_details", "reasoning_tokens"),
    },
}


@dataclass(frozen=True)
class Heard:
    """What an answer said. ``stop`` is none where it did not come to say why it ended."""

    text: str = ""
    tools: tuple[Tool, ...] = ()
    stop: Stop | None = None


def hear(wire: str, data: bytes, streamed: bool) -> Heard:
    """Read an answer, whole or as far as it came; what a cassette has no word for, as reasoning, is left out."""
    fold, read = READERS[wire]
    return read(fold(stream_events(data)) if streamed else read_object(data))


def reported(wire: str, native: Mapping[str, Any] | None) -> Reported:
    """Return a provider's usage in a cassette's names: what is no count is not reported."""
    found = {name: _count(native or {}, path) for name, path in USAGE_PATHS[wire].items()}
    if (found.get("cache_write_hour") or 0) > (found.get("cache_write_input") or 0):
        found["cache_write_hour"] = None
    return Reported(**found)


def _count(native: Mapping[str, Any], path: tuple[str, ...]) -> int | None:
    value: Any = native
    for part in path:
        value = _object(value).get(part)
    return value if type(value) is int and 0 <= value < 10**DIGITS else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _stop(reason: Any) -> Stop | None:
    return STOPS.get(reason, "end_turn") if isinstance(reason, str) else None


def _tool(name: Any, arguments: Any) -> Iterator[Tool]:
    """Yield a call, with its arguments as the object that they are, or as text if they are none."""
    if not (isinstance(name, str) and name):
        return
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    given = arguments if isinstance(arguments, dict) else read_object(text.encode("utf-8", "replace"))
    known = _storable(given, DEEPEST) and (given or text.strip() == "{}")
    yield Tool(name=name, input=dict(given)) if known else Tool(name=name, raw=text)


def _storable(value: Any, depth: int) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_storable(item, depth - 1) for item in inner)
    if isinstance(value, float):
        return math.isfinite(value)
    return not (isinstance(value, int) and abs(value) >= 10**DIGITS)


def _anthropic_whole(message: Mapping[str, Any]) -> Heard:
    blocks = list(_objects(message.get("content")))
    text = "".join(_text(block.get("text")) for block in blocks if block.get("type") == "text")
    used = (block for block in blocks if block.get("type") == "tool_use")
    tools = tuple(tool for block in used for tool in _tool(block.get("name"), block.get("input")))
    return Heard(text, tools, _stop(message.get("stop_reason")))


def _anthropic_stream(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    blocks: dict[Any, dict[str, Any]] = {}
    reason: Any = None
    for event in events:
        delta = _object(event.get("delta"))
        index = str(event.get("index"))
        match event.get("type"):
            case "content_block_start":
                blocks[index] = {**_object(event.get("content_block")), "pieces": []}
            case "content_block_delta" if index in blocks:
                blocks[index]["pieces"].append(_text(delta.get("text")) or _text(delta.get("partial_json")))
            case "message_delta":
                reason = delta.get("stop_reason") or reason
    return {"content": [_closed(block) for block in blocks.values()], "stop_reason": reason}


def _closed(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block with the pieces that came after its start put together."""
    rest = "".join(block["pieces"])
    if block.get("type") == "text":
        return {**block, "text": _text(block.get("text")) + rest}
    return {**block, "input": rest or block.get("input")}


def _chat_whole(completion: Mapping[str, Any]) -> Heard:
    choice = next(_objects(completion.get("choices")), {})
    message = _object(choice.get("message"))
    calls = (_object(call.get("function")) for call in _objects(message.get("tool_calls")))
    tools = tuple(tool for call in calls for tool in _tool(call.get("name"), call.get("arguments")))
    text = _content(message.get("content")) or _text(message.get("refusal"))
    return Heard(text, tools, _stop(choice.get("finish_reason")))


def _content(value: Any) -> str:
    """Return the text of a string, or of the text parts of a list."""
    return _text(value) or "".join(_text(part.get("text")) for part in _objects(value))


def _chat_stream(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    text: list[str] = []
    calls: dict[Any, dict[str, str]] = {}
    reason: Any = None
    for choice in (choice for event in events for choice in _objects(event.get("choices"))):
        if choice.get("index") not in (0, None):
            continue
        delta = _object(choice.get("delta"))
        text.append(_content(delta.get("content")) or _text(delta.get("refusal")))
        for call in _objects(delta.get("tool_calls")):
            _extend(calls.setdefault(_place(call, calls), {"name": "", "arguments": ""}), _object(call.get("function")))
        reason = choice.get("finish_reason") or reason
    message = {"content": "".join(text), "tool_calls": [{"function": call} for call in calls.values()]}
    return {"choices": [{"message": message, "finish_reason": reason}]}


def _place(call: Mapping[str, Any], calls: Mapping[Any, Any]) -> str:
    """Return which call a piece belongs to: its index, where there is one; else an id begins a new one."""
    if isinstance(call.get("index"), int):
        return str(call["index"])
    return f"+{len(calls)}" if call.get("id") or not calls else next(reversed(calls))


def _extend(call: dict[str, str], piece: Mapping[str, Any]) -> None:
    call["name"] = call["name"] or _text(piece.get("name"))
    call["arguments"] += _text(piece.get("arguments"))


def _responses_whole(response: Mapping[str, Any]) -> Heard:
    items = list(_objects(response.get("output")))
    parts = [part for item in items if item.get("type") == "message" for part in _objects(item.get("content"))]
    tools = tuple(tool for item in items for tool in _responses_tool(item))
    reason = _object(response.get("incomplete_details")).get("reason")
    known = response.get("status") in ("completed", "incomplete")
    stop = _stop(reason) or ("tool_use" if tools else "end_turn") if known else None
    return Heard("".join(_text(part.get("text")) or _text(part.get("refusal")) for part in parts), tools, stop)


def _responses_tool(item: Mapping[str, Any]) -> Iterator[Tool]:
    match item.get("type"):
        case "function_call":
            yield from _tool(item.get("name"), item.get("arguments"))
        case "custom_tool_call":
            yield from _tool(item.get("name"), {"input": _text(item.get("input"))})


def _responses_stream(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    items: dict[str, dict[str, Any]] = {}
    pieces: dict[str, list[str]] = {}
    last: Mapping[str, Any] = {}
    for event in events:
        place, item = str(event.get("output_index")), event.get("item")
        match _text(event.get("type")):
            case "response.output_item.added" | "response.output_item.done" if isinstance(item, dict):
                items[place], pieces[place] = dict(item), []
            case kind if kind in PIECES and place in pieces:
                pieces[place].append(_text(event.get("delta")))
            case "response.completed" | "response.incomplete":
                last = _object(event.get("response"))
    output = [_filled(item, "".join(pieces[place])) for place, item in items.items()]
    return {**last, "output": output or last.get("output")}


def _filled(item: dict[str, Any], rest: str) -> dict[str, Any]:
    """Return an item that was never done with as much as came of it."""
    match item.get("type"):
        case "message" if rest:
            return {**item, "content": [{"type": "output_text", "text": rest}]}
        case "function_call" if rest:
            return {**item, "arguments": rest}
        case "custom_tool_call" if rest:
            return {**item, "input": rest}
    return item


Fold = Callable[[Iterable[Mapping[str, Any]]], Mapping[str, Any]]
READERS: Mapping[str, tuple[Fold, Callable[[Mapping[str, Any]], Heard]]] = {
    ANTHROPIC: (_anthropic_stream, _anthropic_whole),
    CHAT: (_chat_stream, _chat_whole),
    RESPONSES: (_responses_stream, _responses_whole),
}
