"""Tool calls as a transcript tells them, and between which answers of the model they were made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.files import UnsafeFile, read_untrusted

TRANSCRIPT = "transcript.jsonl"
LIMIT = 1 << 30
NAME = 200


@dataclass(frozen=True)
class Step:
    """A tool call: its session, id and name, whether it failed, and how many rounds of calls came before its own."""

    session: str
    id: str
    name: str
    error: bool
    round: int


def read_steps(directory: Path, cell_id: str, attempt: int) -> tuple[Step, ...]:
    """Return the tool calls of a cell in their order; none where there is no transcript that can be read."""
    try:
        data = read_untrusted(directory, f"cells/{cell_id}/{attempt}/{TRANSCRIPT}", LIMIT)
    except (UnsafeFile, OSError):
        return ()
    events = [event for line in data.split(b"\n") if (event := _event(line))]
    failed = {(_text(e, "session"), _text(e, "id")) for e in events if e.get("error") is True}
    return tuple(_steps(events, failed))


def _steps(events: Sequence[dict[str, Any]], failed: set[tuple[str, str]]) -> Iterator[Step]:
    """Calls that follow one another without a result in between are of one answer."""
    rounds: dict[str, int] = {}
    fresh: dict[str, bool] = {}
    for event in events:
        session = _text(event, "session")
        if event["type"] == "tool_call":
            if fresh.get(session, True):
                rounds[session] = rounds.get(session, -1) + 1
            fresh[session] = False
            identity = _text(event, "id")
            yield Step(
                session, identity, _text(event, "name") or "tool", (session, identity) in failed, rounds[session]
            )
        elif event["type"] == "tool_result":
            fresh[session] = True


def tool_times(
    steps: Sequence[Step], answers: Sequence[tuple[int, int]], whole: tuple[int, int]
) -> Iterator[tuple[Step, int, int]]:
    """Yield each call with its start and end in nanoseconds: from the answer that asked for it to the next request.

    ``answers`` are start and end of the model's answers in their order, ``whole`` those of the session.
    """
    for step in steps:
        if step.round < len(answers):
            start = answers[step.round][1]
            end = answers[step.round + 1][0] if step.round + 1 < len(answers) else max(start, whole[1])
        else:
            start, end = answers[-1][1] if answers else whole[0], whole[1]
        yield step, start, max(start, end)


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def _text(event: dict[str, Any], name: str) -> str:
    """A field that is a text, redacted and cut: an agent may name its calls as it likes."""
    value = event.get(name)
    return Redactor().text(value)[:NAME] if isinstance(value, str) else ""
