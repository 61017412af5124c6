"""A script's numbers survive every wire format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.usage.normalise import normalise
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES, StreamReader, read_whole

COUNT = st.integers(0, 10**7)
TOOL = ToolUse("call_wft0n0x", "bash", {"command": "echo 'ü\n'"})


def answer(usage: Reported, text: str = "Hello, wörld. " * 9, tools: tuple[ToolUse, ...] = (TOOL,)) -> Answer:
    return Answer("1", "model-x", 1, text, tools, usage, "tool_use" if tools else "end_turn")


@st.composite
def reports(draw: st.DrawFn) -> tuple[str, Reported]:
    wire = draw(st.sampled_from([ANTHROPIC, CHAT, RESPONSES]))
    reasoning = None if wire == ANTHROPIC else draw(COUNT)
    ordinary, read, write, output = (draw(COUNT) for _ in range(4))
    return wire, Reported(
        ordinary_input=ordinary,
        cache_read_input=read,
        cache_write_input=write,
        output=output,
        reasoning_output=reasoning,
    )


class TestNumbers:
    @given(reports())
    def test_round_trip(self, case: tuple[str, Reported]) -> None:
        """What a cassette reports is what normalising the answer gives, whole and streamed."""
        wire, usage = case
        form = FORMS[wire]
        whole = read_whole(json.dumps(form.whole(answer(usage), Asked())).encode())
        reader = StreamReader(wire)
        for event in form.stream(answer(usage), Asked()):
            reader.feed(event)
        known = {name: value for name, value in usage if name in Usage.model_fields}
        expected = {**known, "total_input": usage.whole_input}
        for reading in (whole, reader.reading()):
            assert dict(normalise(wire, reading.usage)) == expected
            assert (reading.model, reading.finished, reading.started) == ("model-x", True, True)
            assert reading.response_id is not None

    @pytest.mark.parametrize("wire", FORMS)
    def test_nothing_reported_is_unknown(self, wire: str) -> None:
        """A turn that reports nothing is unknown in every field."""
        form = FORMS[wire]
        reading = read_whole(json.dumps(form.whole(answer(Reported()), Asked())).encode())
        assert all(value is None for _, value in normalise(wire, reading.usage))

    def test_a_stream_of_chat_reports_only_when_asked(self) -> None:
        """Without stream_options.include_usage a chat stream has no usage."""
        reader = StreamReader(CHAT)
        for event in FORMS[CHAT].stream(answer(Reported(total_input=5, output=1)), Asked(stream_usage=False)):
            reader.feed(event)
        assert (reader.reading().usage, reader.reading().finished) == (None, True)


class TestStreams:
    @given(st.sampled_from(sorted(FORMS)), st.integers(1, 7))
    def test_pieces_do_not_matter(self, wire: str, size: int) -> None:
        """A stream reads the same in whatever pieces it comes."""
        data = b"".join(FORMS[wire].stream(answer(Reported(total_input=5, output=3)), Asked()))
        whole, torn = StreamReader(wire), StreamReader(wire)
        whole.feed(data)
        for start in range(0, len(data), size):
            torn.feed(data[start : start + size])
        assert torn.reading() == whole.reading()

    @pytest.mark.parametrize("wire", FORMS)
    def test_what_closes_an_answer(self, wire: str) -> None:
        """What comes before the closing events is output without an end."""
        form = FORMS[wire]
        events = list(form.stream(answer(Reported(output=3)), Asked()))
        closing = [form.closes(event) for event in events]
        assert closing == sorted(closing)
        reader = StreamReader(wire)
        for event in events[: closing.index(True)]:
            reader.feed(event)
        assert (reader.reading().started, reader.reading().finished) == (True, False)

    def test_tool_input_arrives_whole(self) -> None:
        """The pieces of a tool's input make its JSON."""
        text = ""
        for event in FORMS[CHAT].stream(answer(Reported()), Asked()):
            data = event.removeprefix(b"data: ").strip()
            chunk: dict[str, Any] = json.loads(data) if data != b"[DONE]" else {"choices": []}
            for choice in chunk["choices"]:
                text += "".join(call["function"]["arguments"] for call in choice["delta"].get("tool_calls", ()))
        assert json.loads(text) == TOOL.input

    def test_a_freeform_tool(self) -> None:
        """A tool that was offered as free-form text is called with text."""
        call = ToolUse("c", "apply_patch", {"input": "*** Begin"})
        asked = Asked(({"type": "custom", "name": "apply_patch"},))
        (item,) = FORMS[RESPONSES].whole(answer(Reported(), "", (call,)), asked)["output"]
        assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin")
