"""From captured lines to a transcript: what is common to the streams of all agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, Protocol

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pytest_wfbench.agents.clipping import clip
from pytest_wfbench.agents.stream import (
    Final,
    SkillUse,
    StreamEvent,
    ToolCall,
    ToolResult,
    Transcript,
    TurnStart,
)
from pytest_wfbench.values import values_in

# How much is kept of what an agent says of its failure, in characters.
CAUSE = 1000
# A session of hours has some thousands; a flood of them is no evidence, and would cost the harness minutes to read.
MOST_LINES = 50_000
# Lines that are no event cost much more to refuse than others to read.
MOST_BAD_LINES = 100
# Of all lines together. A stream of as many bytes that held nothing else would cost the harness gigabytes.
MOST_VALUES = 4_000_000
_FEW_VALUES = 10_000
# Of one value in another: what lies deeper nobody can write down again, the transcript and the row included.
DEEPEST = 100

Handler = Callable[[dict[str, Any]], Iterable[StreamEvent]]

_EVENT: TypeAdapter[StreamEvent] = TypeAdapter(StreamEvent)


class BadLine(ValueError):
    """A line that is not what its stream promises."""


class Reader(Protocol):
    """Reads one stream, line by line; what is told by all of it together comes at its ``close``."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What reads each type of line; lines of other types are of no interest."""

    def close(self, exit_status: int | None) -> Iterable[StreamEvent]:
        """Yield what is known once the agent has ended with this status."""


class Part(BaseModel):
    """A part of a line of an agent's own stream; what is not named in it is of no interest."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


def failure(cause: str) -> Final:
    """Return the end in error that has this cause."""
    return Final(status="error", error=clip(cause, CAUSE))


def split_lines(stdout: bytes) -> tuple[list[bytes], str | None]:
    """Return the lines that are not blank, and what is wrong with them: too many, or the last one has no end."""
    lines = stdout.split(b"\n", MOST_LINES)
    last = lines.pop()
    told = [line for line in lines if line.strip()]
    if not last:
        return told, None
    flood = len(lines) == MOST_LINES
    return (
        told,
        f"there are more than {MOST_LINES:,} lines of events" if flood else "the last line of the event stream is torn",
    )


def load_line(line: bytes) -> Any:
    """Read one line as JSON; a lone surrogate, which a program leaves where it cuts a text, becomes ``?``.

    Raises:
        BadLine: for anything else than strict JSON of at most ``DEEPEST`` levels, however long.
    """
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
        if b"\\ud" in line.lower():
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not JSON ({type(error).__name__})") from error
    if line.count(b"[") + line.count(b"{") > DEEPEST and _is_deep(value):
        raise BadLine(f"nested deeper than {DEEPEST} levels")
    return value


def _is_deep(value: Any) -> bool:
    """Whether a value holds values in values beyond ``DEEPEST``."""
    level = [value]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def read_events(stdout: bytes) -> tuple[list[StreamEvent], str | None]:
    """Read lines that are common events already. The fault names the first line that is not one."""
    return _read_lines(stdout, lambda line: (_read_event(line),))


def read_stream(stdout: bytes, reader: Reader, exit_status: int | None) -> tuple[list[StreamEvent], str | None]:
    """Read the whole stream. The fault names the first thing that keeps it from being evidence."""
    events, fault = read_objects(stdout, reader.handlers)
    return [*events, *reader.close(exit_status)], fault


def read_objects(stdout: bytes, handlers: Mapping[str, Handler]) -> tuple[list[StreamEvent], str | None]:
    """Read lines that are objects with a ``type``, each by the handler of its type; others are of no interest.

    The fault names the first line that is no such object, or that its handler finds malformed (``ValidationError``).
    """
    return _read_lines(stdout, lambda line: _handle(line, handlers))


def _handle(line: bytes, handlers: Mapping[str, Handler]) -> Iterator[StreamEvent]:
    value = load_line(line)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise BadLine("no object with a type")
    handler = handlers.get(value["type"])
    try:
        yield from handler(value) if handler else ()
    except ValidationError as error:
        raise BadLine(f"a malformed {value['type']} line") from error


def _read_lines(stdout: bytes, read: Callable[[bytes], Iterable[StreamEvent]]) -> tuple[list[StreamEvent], str | None]:
    lines, torn = split_lines(stdout)
    events: list[StreamEvent] = []
    faults: list[str] = []
    left = MOST_VALUES
    for number, line in enumerate(lines, 1):
        left -= values_in(line, _FEW_VALUES)
        if left < 0:
            faults.append(f"there are more than {MOST_VALUES:,} values in the event stream")
            break
        try:
            events.extend(read(line))
        except BadLine as error:
            faults.append(f"line {number} of the event stream is {error}")
            if len(faults) > MOST_BAD_LINES:
                break
    return events, faults[0] if faults else torn


def _read_event(line: bytes) -> StreamEvent:
    try:
        event = _EVENT.validate_python(load_line(line), strict=True)
    except ValidationError as error:
        raise BadLine("no event of the common stream") from error
    if isinstance(event, SkillUse):
        raise BadLine("a claim of skill use: that is concluded from tool calls, not taken from the agent")
    if isinstance(event, TurnStart):
        raise BadLine("the beginning of a turn, which is not the agent's to tell")
    return event.model_copy(update={"output": clip(event.output)}) if isinstance(event, ToolResult) else event


def seal(events: Iterable[StreamEvent], fault: str | None, exit_status: int | None) -> Transcript:
    """Make the transcript, and find what keeps it from being evidence.

    An ``ok`` end is believed only where the exit status does not contradict it; a status never makes an end ``ok``.
    """
    sealed = tuple(_judged(event, exit_status) for event in events)
    return Transcript(events=sealed, fault=fault or next(_faults(sealed, exit_status), None))


def _judged(event: StreamEvent, exit_status: int | None) -> StreamEvent:
    if isinstance(event, Final) and event.status == "ok" and exit_status not in (0, None):
        return Final(status="error", error=f"exit status {exit_status} after an end that claims success")
    return event


def _faults(events: tuple[StreamEvent, ...], exit_status: int | None) -> Iterator[str]:
    finals = sum(isinstance(event, Final) for event in events)
    if not finals:
        how = "was ended from outside" if exit_status is None else f"ended with exit status {exit_status}"
        yield f"the session {how} and reported no end"
    elif finals > 1:
        yield f"the session reported {finals} ends"
    elif not isinstance(events[-1], Final):
        yield "the session reported events after its end"
    yield from _unpaired(events)


def _unpaired(events: tuple[StreamEvent, ...]) -> Iterator[str]:
    """An id must name one call, and be answered at most once, later."""
    called: set[str] = set()
    answered: set[str] = set()
    for event in events:
        if isinstance(event, ToolCall):
            if event.id in called:
                yield f"two tool calls have the id {event.id!r}"
            called.add(event.id)
        elif isinstance(event, ToolResult):
            if event.id not in called or event.id in answered:
                yield f"a tool result with the id {event.id!r} has no call of its own"
            answered.add(event.id)
