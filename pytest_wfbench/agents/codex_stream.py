"""``codex exec --json``, read into common events."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_wfbench.agents.events import BadLine, clip, load_line, split_lines
from pytest_wfbench.agents.stream import Final, Retry, StreamEvent, TextEvent, ToolCall, ToolResult, UsageClaim

CAUSE = 1000
RETRYING = re.compile(r"Reconnecting\.\.\. \d+/\d+")
SHELLS = frozenset({"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"})


class _Part(BaseModel):
    """A part of a line; what is not named here is of no interest."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _Item(_Part):
    """Something the agent did: said, ran, changed, called. Its fields depend on ``type``."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)
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


class _Error(_Part):
    message: str = ""


def _message(error: Any) -> Any:
    return error.get("message") if isinstance(error, dict) else None


class _Line(_Part):
    type: str
    item: _Item | None = None
    usage: dict[str, Any] | None = None
    error: _Error | None = None
    message: str = ""


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

    def read(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the events of one line. Raises BadLine."""
        value = load_line(data)
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise BadLine("no object with a type")
        try:
            line = _Line.model_validate(value)
        except ValidationError as error:
            raise BadLine(f"a malformed {value['type']} line") from error
        handlers = {
            "turn.started": self._started,
            "item.started": self._item,
            "item.completed": self._item,
            "turn.completed": self._completed,
            "turn.failed": self._failed,
            "error": self._error,
        }
        handler = handlers.get(line.type)
        yield from handler(line) if handler else ()

    def _started(self, line: _Line) -> Iterator[StreamEvent]:
        self.begun = True
        yield from ()

    def _item(self, line: _Line) -> Iterator[StreamEvent]:
        item = line.item
        if item is None:
            raise BadLine(f"a malformed {line.type} line")
        completed = line.type == "item.completed"
        if item.type == "agent_message":
            yield from [TextEvent(text=item.text)] if completed else ()
        # An item of the type `error` is a warning: it ends nothing.
        elif item.type not in ("reasoning", "error"):
            if item.id not in self.calls or not completed:
                self.calls.add(item.id)
                yield _call(item)
            if completed:
                yield _result(item)

    def _completed(self, line: _Line) -> Iterator[StreamEvent]:
        self.ended = True
        if line.usage is not None:
            yield UsageClaim(usage=line.usage)
        yield Final(status="ok")

    def _failed(self, line: _Line) -> Iterator[StreamEvent]:
        self.ended = True
        told = line.error.message if line.error else ""
        yield Final(status="error", error=clip(told or self.told or "the turn failed", CAUSE))

    def _error(self, line: _Line) -> Iterator[StreamEvent]:
        if RETRYING.match(line.message):
            yield Retry(reason=clip(line.message, CAUSE))
        else:
            self.told = line.message

    def close(self, exit_status: int | None) -> Iterator[StreamEvent]:
        """Yield an end where the agent failed before its turn: it may have said so on standard error only."""
        if not self.begun and not self.ended and exit_status not in (0, None):
            told = self.told or f"exit status {exit_status} before anything was done"
            yield Final(status="error", error=clip(told, CAUSE))


def read_codex(stdout: bytes, exit_status: int | None) -> tuple[list[StreamEvent], str | None]:
    """Read the whole stream. The fault names the first thing that keeps it from being evidence."""
    lines, torn = split_lines(stdout)
    reader = _Reader()
    events: list[StreamEvent] = []
    fault = None
    for number, line in enumerate(lines, 1):
        try:
            events.extend(reader.read(line))
        except BadLine as error:
            fault = fault or f"line {number} of the event stream is {error}"
    events.extend(reader.close(exit_status))
    return events, fault or ("the last line of the event stream is torn" if torn else None)
