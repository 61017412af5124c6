"""What a request body says of the conversation it continues, in each wire format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

TOOL_ID = re.compile(r"wft(\d+)n\d+")
TITLE = re.compile(r"\btitles?\b|conversation topic", re.IGNORECASE)
# Of the Responses API's items these are the client's; all others were the model's.
CLIENT_ITEMS = re.compile(r".*_output\Z|item_reference\Z")


def tool_id(prefix: str, turn: int, number: int, call_id: str) -> str:
    """Return an id for a scripted tool call, which tells the turn it belongs to."""
    return f"{prefix}_wft{turn}n{number}{call_id}"


@dataclass(frozen=True)
class _Item:
    """One entry of the history: of the model (with the turn its tool ids tell), or anybody else's."""

    model: bool
    turn: str | None = None


@dataclass(frozen=True)
class Conversation:
    """``turns`` completed answers precede the request. ``opening`` is the first thing the user said."""

    turns: int
    system: str
    opening: str
    tools: tuple[Mapping[str, Any], ...]

    @property
    def wants_title(self) -> bool:
        """Whether this only asks for the conversation's title or topic."""
        return not self.tools and TITLE.search(self.system) is not None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _plain(content: Any) -> str:
    """Return the text of a string or of the text parts of a list."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in _objects(content) if isinstance(part.get("text"), str))


def _turn_of(ids: Iterable[Any]) -> str | None:
    found = (TOOL_ID.search(item) for item in ids if isinstance(item, str))
    return next((match[1] for match in found if match), None)


def _count(items: Iterable[_Item]) -> int:
    """Count turns: runs of the model's items, except that items whose ids tell one turn are one turn."""
    turns, inside, last = 0, False, None
    for item in items:
        if item.model:
            told_apart = item.turn is not None and last is not None
            same = item.turn == last if told_apart else inside
            turns += not same
            last = item.turn if item.turn is not None else last if inside else None
        inside = item.model
    return turns


def _opening(messages: Iterable[Mapping[str, Any]]) -> str:
    return next((_plain(message.get("content")) for message in messages if message.get("role") == "user"), "")


def _system(messages: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(_plain(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))


def _anthropic(body: Mapping[str, Any]) -> Conversation:
    messages = list(_objects(body.get("messages")))
    items = (
        _Item(message.get("role") == "assistant", _turn_of(part.get("id") for part in _objects(message.get("content"))))
        for message in messages
    )
    system = _plain(body.get("system")) + _system(messages)
    return Conversation(_count(items), system, _opening(messages), tuple(_objects(body.get("tools"))))


def _chat(body: Mapping[str, Any]) -> Conversation:
    messages = list(_objects(body.get("messages")))
    items = (
        _Item(
            message.get("role") == "assistant", _turn_of(call.get("id") for call in _objects(message.get("tool_calls")))
        )
        for message in messages
    )
    tools = tuple(tool.get("function", tool) for tool in _objects(body.get("tools")))
    return Conversation(_count(items), _system(messages), _opening(messages), tools)


def _responses_item(item: Mapping[str, Any]) -> _Item:
    if item.get("role") is not None:
        return _Item(item.get("role") == "assistant")
    return _Item(not CLIENT_ITEMS.match(str(item.get("type"))), _turn_of((item.get("call_id"),)))


def _responses(body: Mapping[str, Any]) -> Conversation:
    given = body.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(_objects(given))
    system = _plain(body.get("instructions")) + _system(messages)
    tools = tuple(_objects(body.get("tools")))
    return Conversation(_count(map(_responses_item, messages)), system, _opening(messages), tools)


READERS: Mapping[str, Callable[[Mapping[str, Any]], Conversation]] = {
    ANTHROPIC: _anthropic,
    CHAT: _chat,
    RESPONSES: _responses,
}


def read_conversation(wire: str, body: Mapping[str, Any]) -> Conversation:
    """Return what a request of a known wire format says; fields of wrong types read as absent."""
    return READERS[wire](body)


def subagents(inputs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the prompt of each subagent that tool calls start: ``subagent:<name>``, ``subagent:<name>#2``, …

    Args:
        inputs: what the tools were called with, in the order of the calls.
    """
    found: dict[str, str] = {}
    for given in inputs:
        name, prompt = given.get("subagent_type"), given.get("prompt")
        if isinstance(name, str) and isinstance(prompt, str) and prompt:
            _enter(found, "subagent:" + re.sub(r"\s+", "-", name), prompt)
    return found


def _enter(found: dict[str, str], name: str, prompt: str) -> None:
    """Give a prompt that is new the next free name."""
    for free in chain((name,), (f"{name}#{number}" for number in count(2))):
        if found.setdefault(free, prompt) == prompt:
            return


def side_of(started: Mapping[str, str], opening: str) -> str | None:
    """Return the subagent whose prompt a conversation opens with: of several, the one with the longest."""
    fitting = [name for name, prompt in started.items() if prompt in opening]
    return max(fitting, key=lambda name: len(started[name]), default=None)
