"""Counting a conversation's turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.gateway.conversation import read_conversation, tool_id

USER = {"role": "user", "content": "do it"}
# What a turn holds: whether it has text, and how many tools it calls.
TURNS = st.lists(st.tuples(st.booleans(), st.integers(0, 3)).filter(lambda turn: turn != (False, 0)), max_size=5)
ODD = (None, 5, "x", [], [5], {}, [{"id": 5}], [{"text": 5}], "assistant", "user")
KEYS = ("role", "content", "type", "id", "text", "tool_calls")
NONSENSE = st.sampled_from(ODD) | st.lists(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ODD)), max_size=3)


def ids(turn: int, calls: int) -> list[str]:
    return [tool_id("call", turn, number, "abc") for number in range(calls)]


def chat(turns: list[tuple[bool, int]]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [USER]
    for number, (text, calls) in enumerate(turns):
        said: dict[str, Any] = {"role": "assistant", "content": "text" if text else None}
        if calls:
            said["tool_calls"] = [{"id": name, "type": "function", "function": {}} for name in ids(number, calls)]
        messages.append(said)
        messages += [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in ids(number, calls)] or [USER]
    return {"messages": messages}


def anthropic(turns: list[tuple[bool, int]]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [USER]
    for number, (text, calls) in enumerate(turns):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "text"}] if text else []
        blocks += [{"type": "tool_use", "id": name, "name": "n", "input": {}} for name in ids(number, calls)]
        results = [{"type": "tool_result", "tool_use_id": name} for name in ids(number, calls)]
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results or "more"}]
    return {"messages": messages}


def responses(turns: list[tuple[bool, int]], interleaved: bool) -> dict[str, Any]:
    items: list[dict[str, Any]] = [USER]
    for number, (text, calls) in enumerate(turns):
        items += [{"type": "reasoning", "summary": []}]
        items += [{"type": "message", "role": "assistant", "content": []}] if text else []
        made = [
            {"type": "function_call", "call_id": name, "name": "n", "arguments": "{}"} for name in ids(number, calls)
        ]
        done = [{"type": "function_call_output", "call_id": name, "output": "ok"} for name in ids(number, calls)]
        items += [item for pair in zip(made, done, strict=True) for item in pair] if interleaved else made + done
        items += [] if calls else [USER]
    return {"input": items}


class TestTurns:
    @given(TURNS)
    def test_each_answer_counts_once(self, turns: list[tuple[bool, int]]) -> None:
        """An answer of text and several tool calls is one turn, in every wire format, however its items lie."""
        assert read_conversation("openai-chat", chat(turns)).turns == len(turns)
        assert read_conversation("anthropic-messages", anthropic(turns)).turns == len(turns)
        for interleaved in (False, True):
            assert read_conversation("openai-responses", responses(turns, interleaved)).turns == len(turns)

    def test_calls_that_are_not_ours(self) -> None:
        """Tool calls without our ids count by their runs."""
        call = {"type": "function_call", "call_id": "x", "name": "n"}
        done = {"type": "function_call_output", "call_id": "x", "output": "ok"}
        assert read_conversation("openai-responses", {"input": [USER, call, call, done, done, call, done]}).turns == 2

    def test_a_plain_string(self) -> None:
        """A Responses request may be a string."""
        assert read_conversation("openai-responses", {"input": "hello"}).opening == "hello"

    @given(
        st.sampled_from(["openai-chat", "anthropic-messages", "openai-responses"]),
        st.dictionaries(st.sampled_from(["messages", "input", "system", "tools", "instructions"]), NONSENSE),
    )
    def test_nonsense_does_not_raise(self, wire: str, body: dict[str, Any]) -> None:
        """Fields of wrong types read as absent."""
        assert read_conversation(wire, body).turns >= 0


class TestTitles:
    @pytest.mark.parametrize("system", ["You are a title generator.", "Analyze if this is a new conversation topic."])
    def test_a_request_for_a_title(self, system: str) -> None:
        """A request without tools whose instructions ask for a title is one; with tools it never is."""
        body = {"messages": [{"role": "system", "content": system}, USER]}
        assert read_conversation("openai-chat", body).wants_title
        tools = [{"type": "function", "function": {"name": "f"}}]
        assert not read_conversation("openai-chat", {**body, "tools": tools}).wants_title
        assert not read_conversation("openai-chat", {"messages": [USER]}).wants_title
