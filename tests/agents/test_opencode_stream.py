"""opencode's stream, line by line; what the real binary writes is in ``test_opencode``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.agents.opencode import OpencodeAgent
from pytest_wfbench.agents.stream import SkillUse, TextEvent, ToolResult, Transcript

BEGUN = {"type": "step_start", "part": {}}


def step_end(reason: str = "stop", **fields: Any) -> dict[str, Any]:
    return {"type": "step_finish", "part": {"reason": reason, "tokens": {"output": 3}, **fields}}


def tool(name: str = "bash", status: str = "completed", id: str = "prt_1", **state: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "part": {"id": id, "tool": name, "callID": "call", "state": {"status": status, **state}},
    }


def skill(**state: Any) -> dict[str, Any]:
    return tool("skill", **{"input": {"name": "work"}, "metadata": {"name": "work"}, "output": "x", **state})


def read(*lines: dict[str, Any], exit_status: int | None = 0, tail: bytes = b"") -> Transcript:
    stdout = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + tail
    return OpencodeAgent().read(stdout, exit_status)


class TestTools:
    @pytest.mark.parametrize(
        ("line", "failed"),
        [
            (tool(metadata={"exit": 0}), False),
            (tool(metadata={"exit": 1}), True),
            (tool(metadata={"exit": None}), True),
            (tool("read"), False),
            (tool("read", "error", error="not there"), True),
            (tool("invalid", input={"tool": "nosuch"}), True),
        ],
    )
    def test_failed(self, line: dict[str, Any], failed: bool) -> None:
        """A tool failed by its status, by its command's exit status, or because there is no such tool."""
        found = read(BEGUN, line, step_end())
        assert [e.error for e in found.events if isinstance(e, ToolResult)] == [failed]

    def test_asked_for(self) -> None:
        """A tool that was not offered is counted under the name that was asked for."""
        assert read(tool("invalid", input={"tool": "nosuch"}), step_end()).tool_calls == {"nosuch": 1}

    def test_repeated_ids_of_a_model(self) -> None:
        """Models may number their calls anew in each turn: that is no confusion of calls."""
        found = read(BEGUN, tool(), step_end("tool-calls"), BEGUN, tool(id="prt_2"), step_end())
        assert (found.fault, found.tool_calls) == (None, {"bash": 2})

    @pytest.mark.parametrize(
        ("line", "ok"),
        [
            (skill(), True),
            (skill(status="error"), False),
            (skill(metadata={}), False),
            (skill(metadata={"name": "other"}), False),
        ],
    )
    def test_skill(self, line: dict[str, Any], ok: bool) -> None:
        """A use of a skill is a call that succeeded and says that it loaded this skill."""
        found = read(BEGUN, line, step_end())
        assert [e.ok for e in found.events if isinstance(e, SkillUse)] == [ok]


class TestEnds:
    @pytest.mark.parametrize(
        ("lines", "error"),
        [
            ([BEGUN, step_end("tool-calls")], "the session ended after a step that ended with 'tool-calls'"),
            ([BEGUN, step_end("length")], "the session ended after a step that ended with 'length'"),
            ([BEGUN, step_end(), BEGUN], "the session ended inside a step"),
            ([BEGUN, {"type": "error", "error": {"name": "E", "data": {"message": "why"}}}, step_end()], "why"),
            ([{"type": "error", "error": {"name": "UnknownError"}}], "UnknownError"),
            ([{"type": "error"}], "error"),
        ],
    )
    def test_error(self, lines: list[dict[str, Any]], error: str) -> None:
        """Exit 0 is no success where the last step was not the last, or an error was told."""
        found = read(*lines)
        assert found.final is not None
        assert (found.fault, found.final.status, found.final.error) == (None, "error", error)

    def test_ok(self) -> None:
        """A last step that stopped by itself is a success, unless the exit status denies it."""
        found = read(BEGUN, {"type": "text", "part": {"text": "a"}}, step_end())
        assert [e for e in found.events if isinstance(e, TextEvent)] == [TextEvent(text="a")]
        assert found.final is not None
        assert found.final.status == "ok"
        denied = read(BEGUN, step_end(), exit_status=1).final
        assert denied is not None
        assert denied.status == "error"

    def test_nothing(self) -> None:
        """Nothing at all is no evidence after exit 0, and an error where it did not even start."""
        assert read().fault == "the session ended with exit status 0 and reported no end"
        assert read(exit_status=None).fault == "the session was ended from outside and reported no end"
        found = read(exit_status=1)
        assert (found.fault, found.final.status if found.final else None) == (None, "error")

    def test_torn(self) -> None:
        """A torn last line is no evidence."""
        assert read(BEGUN, step_end(), tail=b'{"type":').fault == "the last line of the event stream is torn"


class TestLines:
    @pytest.mark.parametrize(
        "line", [{"type": 3}, [], {"type": "text"}, {"type": "step_finish", "part": {}}, tool(id=3)]
    )  # type: ignore[arg-type]
    def test_malformed(self, line: Any) -> None:
        """A line that is not what it says is named."""
        assert (read(line, step_end()).fault or "").startswith("line 1 of the event stream is")

    @given(st.binary(max_size=200), st.none() | st.integers(0, 255))
    def test_anything(self, stdout: bytes, exit_status: int | None) -> None:
        """Whatever is written, it is read to the end, and is no success without a step that says so."""
        found = OpencodeAgent().read(stdout, exit_status)
        assert found.final is None or found.final.status == "error" or b"step_finish" in stdout
