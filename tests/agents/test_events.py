"""From captured lines to a transcript."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from pytest_wfbench.agents.base import Agent
from pytest_wfbench.agents.claude_code import ClaudeCodeAgent
from pytest_wfbench.agents.clipping import OUTPUT_CLIP, clip
from pytest_wfbench.agents.codex import CodexAgent
from pytest_wfbench.agents.events import (
    MOST_BAD_LINES,
    MOST_LINES,
    BadLine,
    load_line,
    read_events,
    read_objects,
    seal,
)
from pytest_wfbench.agents.opencode import OpencodeAgent
from pytest_wfbench.agents.stream import Final, TextEvent, ToolCall, ToolResult, Transcript

OK = {"type": "final", "status": "ok"}
CALL = {"type": "tool_call", "id": "1", "name": "bash", "arguments": {"command": "true"}}
RESULT = {"type": "tool_result", "id": "1", "error": False, "output": ""}


def transcript(*events: dict[str, Any], exit_status: int | None = 0, tail: bytes = b"") -> Transcript:
    stdout = b"".join(json.dumps(event).encode() + b"\n" for event in events) + tail
    return seal(*read_events(stdout), exit_status)


class TestReading:
    def test_every_kind(self) -> None:
        """Each event of the common stream reads back as itself."""
        events = [{"type": "text", "text": "a"}, CALL, RESULT, {"type": "retry", "reason": "r"},
                  {"type": "usage_claim", "usage": {"n": 1}}, OK]  # fmt: skip
        read = transcript(*events)
        assert read.fault is None
        assert [event.type for event in read.events] == [event["type"] for event in events]

    @pytest.mark.parametrize(
        "line",
        [b"plain text", b"{}", b"[]", b'{"type": "other"}', b'{"type": "text", "text": 3}', b'{"type": "text"}',
         b'{"type": "text", "text": "a", "more": 1}', b"\xff\xfe", b"[" * 100_000, b'{"type": "text", "text": NaN}',
         b'{"type": "tool_result", "id": "1", "error": "no"}'],
    )  # fmt: skip
    def test_a_foreign_line_is_a_fault(self, line: bytes) -> None:
        """Anything but an event makes the stream no evidence, and names the line."""
        read = transcript({"type": "text", "text": "a"}, tail=line + b"\n" + json.dumps(OK).encode() + b"\n")
        assert str(read.fault).startswith("line 2 of the event stream is ")
        assert read.final == Final(status="ok")

    def test_torn_line(self) -> None:
        """A stream whose last line has no end is torn, even where that line would read."""
        assert transcript(tail=json.dumps(OK).encode()).fault == "the last line of the event stream is torn"

    def test_claimed_skill_use(self) -> None:
        """An agent cannot claim that it used a skill."""
        claim = {"type": "skill", "name": "work", "call_id": "1", "ok": True}
        read = transcript(claim, OK)
        assert read.skills_used == ()
        assert "claim of skill use" in str(read.fault)

    def test_lone_surrogate(self) -> None:
        """Half of a character, left where a text was cut, is replaced and spoils nothing."""
        read = transcript(tail=b'{"type": "text", "text": "a\\ud83d"}\n' + json.dumps(OK).encode() + b"\n")
        assert read.events[0] == TextEvent(text="a?")
        assert read.fault is None
        assert read.model_dump_json()

    def test_output_is_clipped(self) -> None:
        """The parent clips, whatever the agent did."""
        read = transcript(CALL, {**RESULT, "output": "x" * 100_000}, OK)
        assert len(read.events[1].output) < OUTPUT_CLIP + 100

    @given(st.binary())
    def test_no_bytes_raise(self, data: bytes) -> None:
        """Whatever was captured is read to its end."""
        assert seal(*read_events(data), 0).fault is not None

    @given(st.lists(st.sampled_from([CALL, RESULT, OK, {"type": "text", "text": "a"}])), st.integers(-2, 2))
    def test_evidence_has_one_end_and_paired_ids(self, events: list[dict[str, Any]], exit_status: int) -> None:
        """Without a fault there is one end, the last, and every result has its own earlier call."""
        read = transcript(*events, exit_status=exit_status)
        if read.fault is None:
            assert read.events[-1] == read.final
            seen = [event for event in read.events if isinstance(event, ToolCall | ToolResult)]
            assert [type(event) for event in seen] in ([], [ToolCall], [ToolCall, ToolResult])


class TestObjects:
    @pytest.mark.parametrize("agent", [ClaudeCodeAgent(), CodexAgent(), OpencodeAgent()])
    def test_flood(self, agent: Agent) -> None:
        """A flood of lines is told as one, whichever agent's stream it is in."""
        found = agent.read(b'{"type": "other"}\n' * (MOST_LINES + 1), 0)
        assert found.fault == "there are more than 50,000 lines of events"

    def test_bad_lines_end_the_reading(self) -> None:
        """Of lines that are no objects a hundred are looked at, and no more of those behind them."""
        seen: list[object] = []

        def told(value: dict[str, Any]) -> tuple[()]:
            seen.append(value)
            return ()

        line, bad = b'{"type": "text"}\n', b"bad\n"
        for count, heard in ((MOST_BAD_LINES, 1), (MOST_BAD_LINES + 1, 0)):
            seen.clear()
            assert "line 1 of the event stream is not JSON" in str(read_objects(bad * count + line, {"text": told})[1])
            assert len(seen) == heard

    def test_what_a_handler_refuses(self) -> None:
        """A line that its handler finds malformed is named by its number and type."""
        refuse = TypeAdapter(int).validate_python
        stdout = b'{"type": "other"}\n{"type": "text"}\n'
        assert read_objects(stdout, {"text": lambda value: [refuse(value)]}) == (
            [], "line 2 of the event stream is a malformed text line",
        )  # fmt: skip


class TestEnds:
    def test_none(self) -> None:
        """A session without an end is no evidence, and the fault says how it stopped."""
        assert transcript(CALL, exit_status=137).fault == "the session ended with exit status 137 and reported no end"
        assert transcript(CALL, exit_status=None).fault == "the session was ended from outside and reported no end"

    def test_two(self) -> None:
        """Two ends contradict each other."""
        assert transcript(OK, OK).fault == "the session reported 2 ends"

    def test_early(self) -> None:
        """Nothing follows the end."""
        assert transcript(OK, CALL).fault == "the session reported events after its end"

    def test_exit_status_denies(self) -> None:
        """A success with a failing exit status is an error; an error stays one whatever the status."""
        assert transcript(OK, exit_status=1).final == Final(
            status="error", error="exit status 1 after an end that claims success"
        )
        assert transcript({"type": "final", "status": "error", "error": "e"}, exit_status=0).final.status == "error"


class TestIds:
    @pytest.mark.parametrize("events", [[CALL, CALL], [RESULT], [RESULT, CALL], [CALL, RESULT, RESULT]])
    def test_unpaired(self, events: list[dict[str, Any]]) -> None:
        """An id names one call and one later result."""
        assert "'1'" in str(transcript(*events, OK).fault)


@given(st.text(), st.integers(2, 50))
def test_clip_keeps_both_ends(text: str, limit: int) -> None:
    """A clipped text begins and ends as the whole, and says what it lacks."""
    clipped = clip(text, limit)
    if len(text) <= limit:
        assert clipped == text
    else:
        assert clipped.startswith(text[: limit // 2])
        assert clipped.endswith(text[-(limit // 2) :])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_json_reads_back(value: Any) -> None:
    """Strict JSON is read as it is."""
    assert load_line(json.dumps(value).encode()) == value


def test_bad_json_says_so() -> None:
    """What is not JSON raises one kind of error."""
    with pytest.raises(BadLine):
        load_line(b'{"a": Infinity}')
