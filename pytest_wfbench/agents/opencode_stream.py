"""``opencode run --format json``, read into common events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from pytest_wfbench.agents.clipping import clip
from pytest_wfbench.agents.events import Handler, Part, failure, read_stream
from pytest_wfbench.agents.stream import Final, SkillUse, StreamEvent, TextEvent, ToolCall, ToolResult, UsageClaim

SKILL_TOOL = "skill"
# What the agent calls instead of a tool that its model was not offered.
INVALID = "invalid"
# The one reason of a step's end after which the model had nothing more to do.
DONE = "stop"


class _Text(Part):
    text: str


class _State(Part):
    status: str
    input: dict[str, Any] = Field(default_factory=dict)
    output: str | None = None
    error: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class _Tool(Part):
    """A call and its answer in one; ``id`` is the agent's own, since those of models may repeat."""

    id: str
    tool: str
    state: _State


class _StepEnd(Part):
    reason: str
    tokens: dict[str, Any] | None = None


def _failed(tool: _Tool) -> bool:
    exit_status = tool.state.metadata.get("exit", 0)
    return tool.state.status != "completed" or tool.tool == INVALID or exit_status != 0


@dataclass
class _Reader:
    """Reads line by line. ``reasons`` are those of the steps' ends, ``open`` says that a step has none yet."""

    reasons: list[str] = field(default_factory=list)
    tokens: list[dict[str, Any] | None] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    open: bool = False

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What reads each type of line."""
        return {
            "step_start": self._step_start,
            "step_finish": self._step_finish,
            "text": self._text,
            "tool_use": self._tool,
            "error": self._error,
        }

    def _step_start(self, value: dict[str, Any]) -> tuple[()]:
        self.open = True
        return ()

    def _step_finish(self, value: dict[str, Any]) -> tuple[()]:
        end = _StepEnd.model_validate(value.get("part"))
        self.open = False
        self.reasons.append(end.reason)
        self.tokens.append(end.tokens)
        return ()

    def _text(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        yield TextEvent(text=_Text.model_validate(value.get("part")).text)

    def _tool(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        tool = _Tool.model_validate(value.get("part"))
        state, asked = tool.state, tool.state.input.get("tool")
        name = asked if tool.tool == INVALID and isinstance(asked, str) else tool.tool
        yield ToolCall(id=tool.id, name=name, arguments=state.input)
        output = state.error if state.output is None else state.output
        yield ToolResult(id=tool.id, error=_failed(tool), output=clip(output or ""))
        skill = state.input.get("name")
        if tool.tool == SKILL_TOOL and isinstance(skill, str):
            yield SkillUse(name=skill, call_id=tool.id, ok=not _failed(tool) and state.metadata.get("name") == skill)

    def _error(self, value: dict[str, Any]) -> tuple[()]:
        self.errors.append(_cause(value.get("error")))
        return ()

    def close(self, exit_status: int | None) -> Iterator[StreamEvent]:
        """Yield the claim and the end that the steps and errors come to; the agent writes no summary of its own."""
        if self.tokens:
            yield UsageClaim(usage={"steps": self.tokens})
        cause = next(self._causes(exit_status), None)
        if cause is not None:
            yield failure(cause)
        elif self.reasons:
            yield Final(status="ok")

    def _causes(self, exit_status: int | None) -> Iterator[str]:
        yield from self.errors[-1:]
        if self.open:
            yield "the session ended inside a step"
        elif self.reasons and self.reasons[-1] != DONE:
            yield f"the session ended after a step that ended with {self.reasons[-1]!r}"
        elif not self.reasons and exit_status not in (0, None):
            yield f"exit status {exit_status} before anything was done"


def _cause(error: Any) -> str:
    """Return what an error says, which is a name and, mostly, a message in its data."""
    value = error if isinstance(error, dict) else {}
    data = value.get("data")
    message = data.get("message") if isinstance(data, dict) else None
    return str(message or value.get("name") or "error")


def read_opencode(stdout: bytes, exit_status: int | None) -> tuple[list[StreamEvent], str | None]:
    """Read the whole stream. The fault names the first thing that keeps it from being evidence."""
    return read_stream(stdout, _Reader(), exit_status)
