"""Skills by file: what counts as having read one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.agents.skill_files import (
    prompt_with_file,
    prompt_with_tool,
    skill_file,
    skill_read,
    with_skill_uses,
)
from pytest_wfbench.agents.stream import SkillUse, ToolCall, ToolResult

PATH = ".claude/skills/work/SKILL.md"


def read_of(command: Any, name: str = "bash", key: str = "command", **more: Any) -> str | None:
    return skill_read(ToolCall(id="1", name=name, arguments={key: command, **more}))


@pytest.mark.parametrize(
    "command",
    [f"cat {PATH}", f"cat ./{PATH}", f"cat /workspace/{PATH}", f"cat '{PATH}'", f'cat "{PATH}"', f"  cat  {PATH} \n"],
)
def test_a_read(command: str) -> None:
    """One ``cat`` of the file, however the path is written, reads it."""
    assert read_of(command) == "work"


def test_of_a_plugin() -> None:
    """The file of a plugin's skill is another one, and read as such."""
    path = skill_file("ours:work")
    assert path == "/opt/wfbench/plugins/ours/skills/work/SKILL.md"
    assert f"`cat {path}`" in prompt_with_file("Do it.", "ours:work")
    assert read_of(f"cat {path}") == "ours:work"
    assert read_of(f"cat .{path}") is read_of(f"cat {path.replace('ours', '..')}") is None


@pytest.mark.parametrize(
    "command",
    [
        f"cat {PATH} && ls", f"cat {PATH}; true", f"cat {PATH} | head -1", f"cat {PATH} || true", f"cat {PATH} >x",
        f"cat {PATH} x", f"cat -n {PATH}", f"head {PATH}", f"echo cat {PATH}", f"cat {PATH}\nfalse\ntrue",
        f"cat '{PATH}", f"cat {PATH}x", f"cat x{PATH}", f"cat /tmp/{PATH}", f"cat ../workspace/{PATH}",
        "cat .claude/skills/../SKILL.md", "cat .claude/skills/*/SKILL.md", "cat .claude/skills/work/other.md",
        f"cat $(echo {PATH})", f"cat {PATH} &", "", f"true || cat {PATH}", f"cat() {{ :; }}; cat {PATH}",
    ],
)  # fmt: skip
def test_no_read(command: str) -> None:
    """What chains, pipes, clips or names another file does not prove a read of exactly this one."""
    assert read_of(command) is None


def test_read_tool() -> None:
    """A tool named ``read`` with the one argument ``path`` counts as well."""
    assert read_of(PATH, name="read", key="path") == "work"
    assert read_of(PATH, name="read", key="path", limit=1) is None
    assert read_of(PATH, name="write", key="path") is None
    assert read_of(f"cat {PATH}", timeout=1) is None
    assert read_of(3) is None


@given(st.text())
def test_nothing_else_reads(text: str) -> None:
    """No other text is taken for a read."""
    assert read_of(text) is None or PATH.replace("work", str(read_of(text))) in text


class TestPairing:
    CALL = ToolCall(id="1", name="bash", arguments={"command": f"cat {PATH}"})

    def test_success(self) -> None:
        """A read and its success are one use, told after the result."""
        events = [self.CALL, ToolResult(id="1", output="# Work")]
        assert list(with_skill_uses(events)) == [*events, SkillUse(name="work", call_id="1", ok=True)]

    def test_failure(self) -> None:
        """A read that failed is a use that is not ok."""
        [use] = [e for e in with_skill_uses([self.CALL, ToolResult(id="1", error=True)]) if isinstance(e, SkillUse)]
        assert not use.ok

    @pytest.mark.parametrize("events", [[CALL], [ToolResult(id="1"), CALL], [CALL, ToolResult(id="2")]])
    def test_unanswered(self, events: list[Any]) -> None:
        """Without its own later result a read is no use."""
        assert list(with_skill_uses(events)) == events


def test_prompts() -> None:
    """A session without a skill has the verbatim prompt; one with a skill has it last."""
    assert prompt_with_file("Do it.", None) == prompt_with_tool("Do it.", None) == "Do it."
    assert f"`cat {skill_file('work')}`" in prompt_with_file("Do it.", "work")
    assert "`work`" in prompt_with_tool("Do it.", "work")
    assert prompt_with_file("Do it.", "work").endswith("\n\nDo it.")
    assert prompt_with_tool("Do it.", "work").endswith("\n\nDo it.")
