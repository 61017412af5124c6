"""Claude Code's ``stream-json`` output, read into common events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from pytest_wfbench.agents.clipping import clip
from pytest_wfbench.agents.events import Handler, Part, failure, read_stream
from pytest_wfbench.agents.stream import (
    Final,
    Retry,
    SkillUse,
    StreamEvent,
    TextEvent,
    ToolCall,
    ToolResult,
    UsageClaim,
)

SKILL_TOOL = "Skill"
SYNTHETIC = "<synthetic>"


class _Text(Part):
    text: str


class _ToolUse(Part):
    id: str
    name: str
    input: dict[str, Any] = Field(default_factory=dict)


class _ToolResult(Part):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class _Message(Part):
    content: list[dict[str, Any]] | str = ""
    model: str | None = None


class _Spoken(Part):
    """An ``assistant`` or ``user`` line; ``parent_tool_use_id`` is set where a subagent speaks."""

    message: _Message
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None


class _System(Part):
    subtype: str = ""
    error_status: int | None = None
    error: Any = None


class _Result(Part):
    """The end of a turn: the only one, or one of several where subagents ran in the background.

    ``usage`` leaves subagents out and is this turn's alone; ``modelUsage`` is the whole session's so far.
    """

    subtype: str
    is_error: bool
    result: str | None = None
    errors: list[Any] = Field(default_factory=list)
    usage: dict[str, Any] | None = None
    model_usage: dict[str, Any] | None = Field(default=None, alias="modelUsage")
    result_index: int | None = None


@dataclass
class _Reader:
    """Reads line by line. ``skills`` are Skill calls without an answer, ``late`` says that work followed a result."""

    results: list[_Result] = field(default_factory=list)
    skills: dict[str, Any] = field(default_factory=dict)
    late: bool = False

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What reads each type of line."""
        return {"assistant": self._assistant, "user": self._user, "system": self._system, "result": self._result}

    def _assistant(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        spoken = _Spoken.model_validate(value)
        self.late = bool(self.results)
        for kind, block in _blocks(spoken.message):
            if kind == "tool_use":
                call = _ToolUse.model_validate(block)
                if call.name == SKILL_TOOL:
                    self.skills[call.id] = call.input.get("skill")
                yield ToolCall(id=call.id, name=call.name, arguments=call.input)
            # A subagent's words are not the agent's answer, and an API error is told as a message of no model.
            elif kind == "text" and not spoken.parent_tool_use_id and spoken.message.model != SYNTHETIC:
                yield TextEvent(text=_Text.model_validate(block).text)

    def _user(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        spoken = _Spoken.model_validate(value)
        found = [block for kind, block in _blocks(spoken.message) if kind == "tool_result"]
        self.late = self.late or bool(found and self.results)
        for block in found:
            answer = _ToolResult.model_validate(block)
            yield ToolResult(id=answer.tool_use_id, error=bool(answer.is_error), output=clip(_flat(answer.content)))
            name = self.skills.pop(answer.tool_use_id, None)
            if isinstance(name, str) and len(found) == 1:
                ok = not answer.is_error and _launched(spoken.tool_use_result, name)
                yield SkillUse(name=name, call_id=answer.tool_use_id, ok=ok)

    def _system(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        if value.get("subtype") == "api_retry":
            line = _System.model_validate(value)
            yield Retry(reason=f"{line.error_status or 'no answer'}: {line.error}")

    def _result(self, value: dict[str, Any]) -> tuple[()]:
        self.results.append(_Result.model_validate(value))
        self.late = False
        return ()

    def close(self, exit_status: int | None) -> Iterator[StreamEvent]:
        """Yield what the results come to: one claim and one end, in error if any of them is."""
        if not self.results:
            return
        last = self.results[-1]
        usages = [result.usage for result in self.results]
        yield UsageClaim(usage={"results": usages, "model_usage": last.model_usage})
        failed = [result for result in self.results if result.is_error or result.subtype != "success"]
        yield failure(_cause(failed[-1])) if failed else Final(status="ok")

    def fault(self) -> str | None:
        """Say what is wrong with the results as a whole.

        Several are one session's only if they are counted through, which shows that none was added or lost.
        """
        indices = [result.result_index for result in self.results]
        if len(indices) > 1 and indices != list(range(len(indices))):
            return f"the session reported {len(indices)} results that are not one after the other"
        return "the session reported work after its result" if self.late else None


def _blocks(message: _Message) -> Iterator[tuple[object, dict[str, Any]]]:
    blocks = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    return ((block.get("type"), block) for block in blocks)


def _launched(answer: object, name: str) -> bool:
    return isinstance(answer, dict) and answer.get("success") is True and answer.get("commandName", name) == name


def _flat(content: Any) -> str:
    """Return the text of a tool's answer, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in blocks if isinstance(block, dict))


def _cause(result: _Result) -> str:
    return result.result or "; ".join(str(error) for error in result.errors) or result.subtype


def read_claude(stdout: bytes, exit_status: int | None) -> tuple[list[StreamEvent], str | None]:
    """Read the whole stream. The fault names the first thing that keeps it from being evidence."""
    reader = _Reader()
    events, fault = read_stream(stdout, reader, exit_status)
    return events, fault or reader.fault()
