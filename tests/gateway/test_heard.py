"""What answers said, out of the bytes of every wire format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse
from pytest_wfbench.gateway.cassette import Tool
from pytest_wfbench.gateway.heard import Heard, hear, reported
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.usage.normalise import normalise
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

SCALARS = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = SCALARS | st.text(max_size=20)
OBJECTS = st.dictionaries(st.text(max_size=8), PLAIN, max_size=3)
VALUES = PLAIN | OBJECTS | st.lists(PLAIN | OBJECTS, max_size=3)
INPUTS = st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=3)
TOOLS = st.lists(st.tuples(st.sampled_from(["bash", "read"]), INPUTS), max_size=3)
STOPS = st.sampled_from(["max_tokens", "refusal", None])


def answer(text: str, tools: list[tuple[str, dict[str, Any]]], stop: Any, raw: str | None = None) -> Answer:
    used = tuple(ToolUse(f"id{number}", name, value, raw) for number, (name, value) in enumerate(tools))
    return Answer("1", "m", 1, text, used, Reported(), stop or ("tool_use" if tools else "end_turn"))


def spoken(wire: str, said: Answer, streamed: bool, cut: bool = False) -> bytes:
    form = FORMS[wire]
    if not streamed:
        return json.dumps(form.whole(said, Asked())).encode()
    return b"".join(event for event in form.stream(said, Asked()) if not (cut and form.closes(event)))


class TestHear:
    @pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("wire", FORMS)
    @settings(max_examples=30)
    @given(st.text(), TOOLS, STOPS)
    def test_round_trip(self, wire: str, streamed: bool, text: str, tools: Any, stop: Any) -> None:
        """Text, tool calls with their inputs, and the reason for the stop are heard as they were said."""
        said = answer(text, tools, stop)
        heard = hear(wire, spoken(wire, said, streamed), streamed)
        assert heard == Heard(text, tuple(Tool(name=name, input=value) for name, value in tools), said.stop)

    @pytest.mark.parametrize("wire", FORMS)
    def test_a_cut_stream(self, wire: str) -> None:
        """What came before a stream broke off is heard; why it would have ended is not known."""
        said = answer("as far as this", [("bash", {"command": "ls"})], None)
        heard = hear(wire, spoken(wire, said, streamed=True, cut=True), streamed=True)
        assert (heard.text, heard.stop) == ("as far as this", None)
        assert heard.tools == (Tool(name="bash", input={"command": "ls"}),)

    @pytest.mark.parametrize(
        "raw", ['{"command": "l', "[1]", '"text"', "{}x", '{"n": 1e999}', '{"n": 12345678901234567890}']
    )
    @pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("wire", [CHAT, RESPONSES])
    def test_arguments_that_are_no_object(self, wire: str, streamed: bool, raw: str) -> None:
        """What a model wrote in place of an input is kept as text."""
        heard = hear(wire, spoken(wire, answer("", [("bash", {})], None, raw), streamed), streamed)
        assert heard.tools == (Tool(name="bash", raw=raw),)

    def test_an_unfinished_item(self) -> None:
        """Of a Responses stream that breaks off inside an item, what came of the item is heard."""
        events = list(FORMS[RESPONSES].stream(answer("some words " * 20, [], None), Asked()))
        deltas = [number for number, event in enumerate(events) if b"output_text.delta" in event]
        heard = hear(RESPONSES, b"".join(events[: deltas[1] + 1]), streamed=True)
        assert heard.text == ("some words " * 20)[:96]

    def test_what_is_left_out(self) -> None:
        """Reasoning and what a provider ran itself are no part of a script."""
        blocks = [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "text", "text": "So."},
        ]
        message = {"content": blocks, "stop_reason": "end_turn"}
        assert hear(ANTHROPIC, json.dumps(message).encode(), streamed=False) == Heard("So.", (), "end_turn")

    @pytest.mark.parametrize("wire", FORMS)
    @given(
        st.binary(max_size=200) | st.sampled_from([b'data: {"choices":[{"delta":5}]}\n\n', b'data: {"type":[]}\n\n'])
    )
    def test_garbage_is_silence(self, wire: str, data: bytes) -> None:
        """Bytes that are no answer say nothing, and break nothing."""
        for streamed in (False, True):
            assert hear(wire, data, streamed).tools == ()


class TestReported:
    @pytest.mark.parametrize(
        ("wire", "native"),
        [
            (ANTHROPIC, {"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3}),
            (ANTHROPIC, {"input_tokens": 5, "output_tokens": 9, "service_tier": "x"}),
            (CHAT, {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}}),
            (CHAT, {"prompt_tokens": 5, "prompt_tokens_details": None, "completion_tokens": None}),
            (RESPONSES, {"input_tokens": 5, "output_tokens": True, "output_tokens_details": {"reasoning_tokens": 3}}),
            (RESPONSES, {}),
        ],
        ids=range(6),
    )
    def test_a_replay_reports_the_same(self, wire: str, native: dict[str, Any]) -> None:
        """What is reported again from a cassette normalises to what was: unknown stays unknown."""
        said = Answer("1", "m", 1, "", (), reported(wire, native), "end_turn")
        again = FORMS[wire].whole(said, Asked())["usage"]
        assert normalise(wire, again) == normalise(wire, native)

    def test_hours_of_cache(self) -> None:
        """How much was written for an hour is billed otherwise, so it survives."""
        split = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
        native = {"input_tokens": 5, "cache_creation_input_tokens": 7, "cache_creation": split, "output_tokens": 1}
        said = Answer("1", "m", 1, "", (), reported(ANTHROPIC, native), "end_turn")
        assert FORMS[ANTHROPIC].whole(said, Asked())["usage"] == native
