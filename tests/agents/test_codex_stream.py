"""codex's stream, line by line; what the real binary writes is in ``test_codex``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.agents.codex import CodexAgent
from pytest_wfbench.agents.codex_stream import unwrapped
from pytest_wfbench.agents.stream import Retry, TextEvent, ToolCall, ToolResult, Transcript

STARTED = {"type": "turn.started"}
ENDED = {"type": "turn.completed", "usage": {"input_tokens": 3}}
SKILL = "/bin/bash -c 'cat .claude/skills/work/SKILL.md'"


def item(kind: str, stage: str = "completed", id: str = "item_1", **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{stage}", "item": {"id": id, "type": kind, **fields}}


def ran(command: str, exit_code: int | None = 0, status: str = "completed", id: str = "item_1") -> dict[str, Any]:
    return item(
        "command_execution", id=id, command=command, aggregated_output="out", exit_code=exit_code, status=status
    )


def read(*lines: dict[str, Any], exit_status: int | None = 0, tail: bytes = b"") -> Transcript:
    stdout = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + tail
    return CodexAgent().read(stdout, exit_status)


class TestTools:
    @pytest.mark.parametrize(
        ("exit_code", "status", "failed"),
        [(0, "completed", False), (1, "failed", True), (1, "completed", True), (None, "declined", True)],
    )
    def test_command(self, exit_code: int | None, status: str, failed: bool) -> None:
        """A command is one call and one result, which failed by its status or by its exit status."""
        started = item("command_execution", "started", command="/bin/bash -c ls", status="in_progress", exit_code=None)
        found = read(STARTED, started, ran("/bin/bash -c ls", exit_code, status), ENDED)
        assert found.events[0] == ToolCall(id="item_1", name="bash", arguments={"command": "ls"})
        assert found.events[1] == ToolResult(id="item_1", error=failed, output="out")
        assert found.fault is None

    def test_skill(self) -> None:
        """Reading a skill's file, by a shell of the system, is a use of it; anything else is none."""
        assert read(STARTED, ran(SKILL), ENDED).skills_used == ("work",)
        assert read(STARTED, ran(SKILL, 1, "failed"), ENDED).skills_used == ()
        assert read(STARTED, ran(SKILL.replace("/bin/bash", "/workspace/bash")), ENDED).skills_used == ()
        assert read(STARTED, ran(SKILL.replace("cat", "head -1")), ENDED).skills_used == ()

    @pytest.mark.parametrize(
        ("fields", "name"),
        [
            ({"kind": "file_change", "changes": []}, "apply_patch"),
            ({"kind": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}}, "mcp__s__t"),
            ({"kind": "collab_tool_call", "tool": "spawn_agent"}, "spawn_agent"),
            ({"kind": "something_new"}, "something_new"),
        ],
    )
    def test_others(self, fields: dict[str, Any], name: str) -> None:
        """Every other thing that the agent does is a call with a name."""
        assert read(STARTED, item(status="completed", **fields), ENDED).tool_calls == {name: 1}

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"result": {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}}, "a\nb"),
            ({"error": {"message": "gone"}}, "gone"),
            ({"result": {"content": "x"}, "error": "y"}, ""),
            ({"result": [1], "error": {"message": 1}}, ""),
        ],
    )
    def test_answer_of_a_server(self, fields: dict[str, Any], told: str) -> None:
        """What an MCP server answered is in the result, all its texts; of any other shape nothing is."""
        found = read(STARTED, item("mcp_tool_call", server="s", tool="t", status="completed", **fields), ENDED)
        assert found.events[1] == ToolResult(id="item_1", error=False, output=told)

    def test_no_tools(self) -> None:
        """Words are words, and neither reasoning nor a warning is anything."""
        found = read(STARTED, item("agent_message", text="a"), item("reasoning", text="b"), item("error"), ENDED)
        assert [e for e in found.events if isinstance(e, TextEvent)] == [TextEvent(text="a")]
        assert (len(found.events), found.final.status if found.final else None) == (3, "ok")


class TestEnds:
    def test_failed_turn(self) -> None:
        """A failed turn is an error with its cause, whatever the exit status says."""
        end = {"type": "turn.failed", "error": {"message": "why"}}
        retry = {"type": "error", "message": "Reconnecting... 1/1 (x)"}
        found = read(STARTED, retry, {"type": "error", "message": "why"}, end)
        assert found.final is not None
        assert (found.final.status, found.final.error) == ("error", "why")
        assert sum(isinstance(e, Retry) for e in found.events) == 1

    @pytest.mark.parametrize(
        ("lines", "exit_status", "fault"),
        [
            ([STARTED], 0, "the session ended with exit status 0 and reported no end"),
            ([STARTED], 1, "the session ended with exit status 1 and reported no end"),
            ([STARTED], None, "the session was ended from outside and reported no end"),
            ([], 0, "the session ended with exit status 0 and reported no end"),
            ([STARTED, ENDED, ENDED], 0, "the session reported 2 ends"),
            ([STARTED, ENDED, ran("ls")], 0, "the session reported events after its end"),
        ],
    )
    def test_no_evidence(self, lines: list[dict[str, Any]], exit_status: int | None, fault: str) -> None:
        """A turn has one end, and nothing comes after it; the exit status never stands in for it."""
        assert read(*lines, exit_status=exit_status).fault == fault

    def test_nothing_begun(self) -> None:
        """What fails before its turn may have said so on standard error only: that is an end in error."""
        found = read(exit_status=1)
        assert (found.fault, found.final.status if found.final else None) == (None, "error")
        assert read(ENDED, exit_status=1).final.status == "error"  # type: ignore[union-attr]

    def test_torn(self) -> None:
        """A torn last line is no evidence."""
        assert read(STARTED, ENDED, tail=b'{"type":').fault == "the last line of the event stream is torn"


class TestLines:
    @pytest.mark.parametrize(
        "line",
        [{"type": 3}, [], {"type": "item.completed"}, item("agent_message", text=3), item("x", id=4)],  # type: ignore[arg-type]
    )
    def test_malformed(self, line: Any) -> None:
        """A line that is not what it says is named."""
        assert (read(line, STARTED, ENDED).fault or "").startswith("line 1 of the event stream is")

    def test_unwrapped(self) -> None:
        """Only what a shell of the system was told is taken out of its wrapping."""
        assert unwrapped("/bin/bash -lc 'a b'") == "a b"
        assert unwrapped("bash -c 'a b'") == "bash -c 'a b'"
        assert unwrapped("/bin/bash -c 'a b' c") == "/bin/bash -c 'a b' c"
        assert unwrapped("/bin/bash -c 'a") == "/bin/bash -c 'a"

    @given(st.binary(max_size=200), st.none() | st.integers(0, 255))
    def test_anything(self, stdout: bytes, exit_status: int | None) -> None:
        """Whatever is written, it is read to the end, and is no success without an end that says so."""
        found = CodexAgent().read(stdout, exit_status)
        assert found.final is None or found.final.status == "error" or b"turn.completed" in stdout
