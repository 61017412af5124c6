"""The common event stream of every agent, as read by the parent that captured it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TextEvent(_Event):
    """Something the agent said."""

    type: Literal["text"] = "text"
    text: str


class ToolCall(_Event):
    """A tool the agent asked for."""

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolResult(_Event):
    """What the tool of the same id answered; ``output`` is clipped."""

    type: Literal["tool_result"] = "tool_result"
    id: str
    error: bool = False
    output: str = ""


class SkillUse(_Event):
    """A skill request paired with its one later result."""

    type: Literal["skill"] = "skill"
    name: str
    call_id: str
    ok: bool


class UsageClaim(_Event):
    """What the agent says it used; a cross-check, never the meter."""

    type: Literal["usage_claim"] = "usage_claim"
    usage: dict[str, Any]


class Retry(_Event):
    """The agent repeated a request."""

    type: Literal["retry"] = "retry"
    reason: str = ""


class TurnStart(_Event):
    """From here on the agent answers the next prompt of its conversation; ``number`` counts the prompts before it."""

    type: Literal["turn"] = "turn"
    number: int


class Final(_Event):
    """The one end of a session."""

    type: Literal["final"] = "final"
    status: Literal["ok", "error"]
    error: str | None = None


StreamEvent = Annotated[
    TextEvent | ToolCall | ToolResult | SkillUse | UsageClaim | Retry | TurnStart | Final, Field(discriminator="type")
]


class Transcript(_Event):
    """A whole session. ``fault`` says why the stream is no evidence (torn, two ends, none); none where it is."""

    events: tuple[StreamEvent, ...] = ()
    fault: str | None = None

    @property
    def final(self) -> Final | None:
        """The one final event, or none."""
        finals = [event for event in self.events if isinstance(event, Final)]
        return finals[0] if len(finals) == 1 else None

    @property
    def tool_calls(self) -> dict[str, int]:
        """How often each tool was called."""
        counts: dict[str, int] = {}
        for event in self.events:
            if isinstance(event, ToolCall):
                counts[event.name] = counts.get(event.name, 0) + 1
        return counts

    @property
    def answer(self) -> str:
        """All that was said after the last tool call, and after the last prompt of a conversation."""
        said: list[str] = []
        for event in self.events:
            if isinstance(event, ToolCall | TurnStart):
                said = []
            elif isinstance(event, TextEvent):
                said.append(event.text)
        return "\n".join(said)

    @property
    def skills_used(self) -> tuple[str, ...]:
        """Names of the skills whose use succeeded, in the order of first use."""
        return tuple(dict.fromkeys(e.name for e in self.events if isinstance(e, SkillUse) and e.ok))
