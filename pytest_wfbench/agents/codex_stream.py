"""``codex exec --json``, read into common events."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from pytest_wfbench.agents.clipping import clip
from pytest_wfbench.agents.events import CAUSE, Handler, Part, failure, read_stream
from pytest_wfbench.agents.stream import Final, Retry, StreamEvent, TextEvent, ToolCall, ToolResult, UsageClaim

RETRYING = re.compile(r"Reconnecting\.\.\. \d+/\d+")
SHELLS = frozenset({"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"})


class _Item(Part):
    """Something the agent did: said, ran, changed, called. Its fields depend on ``type``."""

    id: str
    type: str
    text: str = ""
    status: str | None = None
    command: str = ""
    aggregated_output: str = ""
    exit_code: int | None = None
    changes: list[Any] = Field(default_factory=list)
    server: str = ""
    tool: str = ""
    arguments: Any = None
    result: Any = None
    error: Any = None

    @property
    def output(self) -> str:
        """What a command printed, else what an MCP server answered: its texts, or why there are none."""
        content = self.result.get("content") if isinstance(self.result, dict) else None
        parts = [*(content if isinstance(content, list) else ()), {"text": _message(self.error)}]
        texts = (part.get("text") for part in parts if isinstance(part, dict))
        return self.aggregated_output or "\n".join(text for text in texts if isinstance(text, str) and text)


def _message(error: Any) -> Any:
    return error.get("message") if isinstance(error, dict) else None


class _ItemLine(Part):
    type: str
    item: _Item


class _Completed(Part):
    usage: dict[str, Any] | None = None


class _Error(Part):
    message: str = ""


class _Failed(Part):
    error: _Error | None = None


def unwrapped(command: str) -> str:
    """Return what a shell of the system was told to run; a command of any other form as it is."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    shell = len(words) == 3 and words[0] in SHELLS and words[1] in ("-c", "-lc")
    return words[2] if shell else command


def _call(item: _Item) -> ToolCall:
    """Name a tool as the agent's model knows it; commands are ``bash``, as they are of other agents."""
    if item.type == "command_execution":
        return ToolCall(id=item.id, name="bash", arguments={"command": unwrapped(item.command)})
    if item.type == "file_change":
        return ToolCall(id=item.id, name="apply_patch", arguments={"changes": item.changes})
    name = f"mcp__{item.server}__{item.tool}" if item.server else item.tool or item.type
    return ToolCall(id=item.id, name=name, arguments=item.arguments if isinstance(item.arguments, dict) else {})


def _result(item: _Item) -> ToolResult:
    failed = item.status not in ("completed", None) or item.exit_code not in (0, None)
    return ToolResult(id=item.id, error=failed, output=clip(item.output))


@dataclass
class _Reader:
    """Reads line by line. ``told`` is the last error outside a turn's end, ``ended`` whether a turn came to one."""

    calls: set[str] = field(default_factory=set)
    told: str = ""
    begun: bool = False
    ended: bool = False

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What reads each type of line."""
        return {
            "turn.started": self._started,
            "item.started": self._item,
            "item.completed": self._item,
            "turn.completed": self._completed,
            "turn.failed": self._failed,
            "error": self._error,
        }

    def _started(self, value: dict[str, Any]) -> tuple[()]:
        self.begun = True
        return ()

    def _item(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        line = _ItemLine.model_validate(value)
        item, completed = line.item, line.type == "item.completed"
        if item.type == "agent_message":
            yield from [TextEvent(text=item.text)] if completed else ()
        # An item of the type `error` is a warning: it ends nothing.
        elif item.type not in ("reasoning", "error"):
            if item.id not in self.calls or not completed:
                self.calls.add(item.id)
                yield _call(item)
            if completed:
                yield _result(item)

    def _completed(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        line = _Completed.model_validate(value)
        self.ended = True
        if line.usage is not None:
            yield UsageClaim(usage=line.usage)
        yield Final(status="ok")

    def _failed(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        line = _Failed.model_validate(value)
        self.ended = True
        yield failure((line.error.message if line.error else "") or self.told or "the turn failed")

    def _error(self, value: dict[str, Any]) -> Iterator[StreamEvent]:
        line = _Error.model_validate(value)
        if RETRYING.match(line.message):
            yield Retry(reason=clip(line.message, CAUSE))
        else:
            self.told = line.message

    def close(self, exit_status: int | None) -> Iterator[StreamEvent]:
        """Yield an end where the agent failed before its turn: it may have said so on standard error only."""
        if not self.begun and not self.ended and exit_status not in (0, None):
            yield failure(self.told or f"exit status {exit_status} before anything was done")


def read_codex(stdout: bytes, exit_status: int | None) -> tuple[list[StreamEvent], str | None]:
    """Read the whole stream. The fault names the first thing that keeps it from being evidence."""
    return read_stream(stdout, _Reader(), exit_status)
