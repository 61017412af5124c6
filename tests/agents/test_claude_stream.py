"""Claude Code's stream, line by line; what the real binary writes is in ``test_claude_code``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.agents.claude_code import ClaudeCodeAgent
from pytest_wfbench.agents.stream import SkillUse, TextEvent, ToolResult, Transcript


def said(*blocks: dict[str, Any], parent: str | None = None, model: str = "m") -> dict[str, Any]:
    message = {"role": "assistant", "model": model, "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def answered(*blocks: dict[str, Any], outcome: Any = None) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": list(blocks)}, "tool_use_result": outcome}


def ended(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "usage": {}, "modelUsage": {},
            **fields}  # fmt: skip


def skill_call(id: str = "t1", **arguments: Any) -> dict[str, Any]:
    return said({"type": "tool_use", "id": id, "name": "Skill", "input": {"skill": "work", **arguments}})


def result_of(id: str = "t1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "Launching", **fields}


def read(*lines: dict[str, Any], exit_status: int | None = 0, tail: bytes = b"") -> Transcript:
    stdout = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + tail
    return ClaudeCodeAgent().read(stdout, exit_status)


class TestSkillUse:
    def test_paired_and_successful(self) -> None:
        """A Skill call, its own result and a success that names the skill are a use."""
        found = read(skill_call(), answered(result_of(), outcome={"success": True, "commandName": "work"}), ended())
        assert found.fault is None
        assert found.skills_used == ("work",)

    @pytest.mark.parametrize(
        "answer",
        [
            answered(result_of(is_error=True), outcome={"success": True}),
            answered(result_of(), outcome={"success": False}),
            answered(result_of(), outcome={"success": 1}),
            answered(result_of(), outcome="success"),
            answered(result_of()),
            answered(result_of(), outcome={"success": True, "commandName": "other"}),
        ],
    )
    def test_not_successful(self, answer: dict[str, Any]) -> None:
        """Any weaker answer is a use that is not ok."""
        found = read(skill_call(), answer, ended())
        assert [e.ok for e in found.events if isinstance(e, SkillUse)] == [False]

    def test_two_results_in_one_line(self) -> None:
        """A success that could be another call's proves nothing."""
        line = answered(result_of("t1"), result_of("t2"), outcome={"success": True})
        assert read(skill_call("t1"), skill_call("t2"), line, ended()).skills_used == ()

    def test_result_before_call(self) -> None:
        """The result comes later than the call, with the same id."""
        success = answered(result_of(), outcome={"success": True})
        found = read(success, skill_call(), ended())
        assert found.skills_used == ()
        assert found.fault is not None


class TestEnds:
    def test_error_that_calls_itself_success(self) -> None:
        """``is_error`` decides, whatever the subtype and the exit status."""
        found = read(ended(is_error=True, result="API Error: 500"), exit_status=0)
        assert (found.final.status, found.final.error) == ("error", "API Error: 500")

    def test_other_subtype(self) -> None:
        """Every subtype but success is an error, named by itself where nothing else is said."""
        assert read(ended(subtype="error_max_turns", result=None)).final.error == "error_max_turns"
        assert read(ended(subtype="error_x", result=None, errors=["a", "b"])).final.error == "a; b"

    def test_several_results(self) -> None:
        """Results that are counted through come to one end, in error if one of them is."""
        assert read(ended(result_index=0), ended(result_index=1)).final.status == "ok"
        assert read(ended(result_index=0, is_error=True), ended(result_index=1)).final.status == "error"

    @pytest.mark.parametrize("indices", [(None, None), (0, 0), (1, 2), (0, 2), (1, 0)])
    def test_stray_result(self, indices: tuple[Any, Any]) -> None:
        """Results that are not one session's are no evidence."""
        found = read(*(ended(result_index=index) for index in indices))
        assert found.fault == "the session reported 2 results that are not one after the other"

    def test_work_after_the_result(self) -> None:
        """A stream that goes on after its last result is no evidence."""
        assert read(ended(), said({"type": "text", "text": "x"})).fault == "the session reported work after its result"
        assert read(ended(), {"type": "system", "subtype": "task_updated"}).fault is None

    def test_torn(self) -> None:
        """A torn last line is no evidence, also where a result came before."""
        assert read(ended(), tail=b'{"type":').fault == "the last line of the event stream is torn"


class TestLines:
    def test_words(self) -> None:
        """A subagent's words and an error in the guise of a message are not the agent's."""
        text = {"type": "text", "text": "a"}
        found = read(said(text), said(text, parent="t1"), said(text, model="<synthetic>"), ended())
        assert [e for e in found.events if isinstance(e, TextEvent)] == [TextEvent(text="a")]

    def test_block_list_results(self) -> None:
        """A result made of blocks is told as their text."""
        blocks = [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]
        found = read(skill_call(), answered(result_of(content=blocks)), ended())
        assert [e.output for e in found.events if isinstance(e, ToolResult)] == ["a\n[image]"]

    def test_unknown_lines_and_blocks(self) -> None:
        """What a later release adds is passed over."""
        found = read({"type": "new"}, said({"type": "thinking", "thinking": "x"}, {"kind": 3}), ended())
        assert found.fault is None
        assert [event.type for event in found.events] == ["usage_claim", "final"]

    @pytest.mark.parametrize(
        "line", [{"type": "result"}, {"type": "assistant"}, {"type": "user", "message": 3}, {"a": 1}]
    )
    def test_malformed(self, line: dict[str, Any]) -> None:
        """A known line that is malformed is a fault that names it."""
        assert str(read(line, ended()).fault).startswith("line 1 of the event stream is ")


_KEYS = (
    "type subtype message content id name input skill tool_use_id is_error text usage tool_use_result success "
    "modelUsage result_index error_status errors parent_tool_use_id"
)
_WORDS = "assistant user system result tool_use tool_result text api_retry success Skill"
_keys = st.sampled_from(_KEYS.split())
_scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(_WORDS.split())
_values = st.recursive(
    _scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(_keys, v, max_size=4), max_leaves=12
)


@given(st.binary(), st.none() | st.integers(0, 255))
def test_no_bytes_raise(data: bytes, exit_status: int | None) -> None:
    """Whatever was captured is read to its end, and bytes by chance are no evidence."""
    assert ClaudeCodeAgent().read(data, exit_status).fault is not None


@given(st.lists(st.dictionaries(_keys, _values, max_size=6), max_size=4))
def test_no_json_raises(lines: list[dict[str, Any]]) -> None:
    """Nor does anything in the shape of the stream."""
    found = read(*lines)
    assert found.fault is not None or found.final is not None


@given(st.integers(0, 2000))
def test_a_cut_stream_is_no_evidence(length: int) -> None:
    """Every proper prefix of a good stream has a fault."""
    lines = [
        skill_call(),
        answered(result_of(), outcome={"success": True}),
        said({"type": "text", "text": "x"}),
        ended(),
    ]
    whole = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    cut = whole[: length % len(whole)]
    assert ClaudeCodeAgent().read(whole, 0).fault is None
    assert ClaudeCodeAgent().read(cut, 0).fault is not None
