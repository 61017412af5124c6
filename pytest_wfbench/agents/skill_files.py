"""Skills by file, for agents without skills of their own: what they are told, and what proves that they read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_wfbench.agents.stream import SkillUse, StreamEvent, ToolCall, ToolResult
from pytest_wfbench.matrix.arms import SKILL_ROOT
from pytest_wfbench.sandbox.spec import PLUGINS, WORKSPACE

_SLUG = r"[a-z0-9][a-z0-9_.-]{0,79}"
_OWN = rf"(?:\./|{re.escape(WORKSPACE)}/)?{re.escape(SKILL_ROOT)}"
_FOREIGN = rf"{re.escape(PLUGINS)}/(?P<plugin>{_SLUG})/skills"
_PATH = rf"(?:{_OWN}|{_FOREIGN})/(?P<name>{_SLUG})/SKILL\.md"
_READ_PATH = re.compile(_PATH)
_READ_COMMAND = re.compile(rf"[ \t]*cat[ \t]+(?P<quote>['\"]?){_PATH}(?P=quote)[ \t\n]*")


def skill_file(skill: str) -> str:
    """Return the path of a skill's file, relative to the workspace; that of ``<plugin>:<skill>`` is absolute."""
    plugin, _, name = skill.rpartition(":")
    return f"{PLUGINS}/{plugin}/skills/{name}/SKILL.md" if plugin else f"{SKILL_ROOT}/{name}/SKILL.md"


def prompt_with_file(prompt: str, skill: str | None) -> str:
    """Put before the prompt which skill file to read, where there is one."""
    if skill is None:
        return prompt
    return (
        f"First run `cat {skill_file(skill)}` as a command of its own, and read all of it. It describes the skill "
        f"`{skill}`: follow it for the task below. Paths in it are relative to its own directory.\n\n{prompt}"
    )


def prompt_with_tool(prompt: str, skill: str | None) -> str:
    """Put before the prompt which skill to call, for an agent with a Skill tool."""
    if skill is None:
        return prompt
    return f"First call the Skill tool for the skill `{skill}`, then follow it for the task below.\n\n{prompt}"


def skill_read(call: ToolCall) -> str | None:
    """Return the skill whose file a call reads, the whole file and nothing else, or none.

    Two forms count: the tool ``bash`` with the one command ``cat FILE`` (plain or quoted, no pipe, chain, redirection,
    option or second file, since their success would not be that of the read), and the tool ``read`` with the one
    argument ``path``. FILE is relative, with or without ``./``, or below the workspace, or a plugin's own.
    """
    match call.name, call.arguments:
        case "bash", {"command": str(text), **rest} if not rest:
            found = _READ_COMMAND.fullmatch(text)
        case "read", {"path": str(text), **rest} if not rest:
            found = _READ_PATH.fullmatch(text)
        case _:
            return None
    if found is None:
        return None
    return f"{found['plugin']}:{found['name']}" if found["plugin"] else found["name"]


def with_skill_uses(events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
    """Add, after the result of each call that read a skill file, the event that says so."""
    reads: dict[str, Any] = {}
    for event in events:
        yield event
        if isinstance(event, ToolCall) and (name := skill_read(event)):
            reads.setdefault(event.id, name)
        elif isinstance(event, ToolResult) and (name := reads.pop(event.id, None)):
            yield SkillUse(name=name, call_id=event.id, ok=not event.error)
