"""``usage.jsonl`` read back without trust: what the gateway wrote, an event a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.store import FRESH, EvidenceError
from pytest_wfbench.files import UnsafeFile, read_untrusted

USAGE = "usage.jsonl"
USAGE_LIMIT = 4 << 30


@dataclass(frozen=True)
class Events:
    """All events in the order of the file; ``torn`` describes a line that was cut short, where one was."""

    events: tuple[Event, ...]
    torn: str | None = None


def read_events(directory: Path) -> Events:
    """Read every event; a sweep without a model has none.

    A line that is no JSON was cut short by a kill, and the gateway that took over began a new one: it is reported and
    passed over.

    Raises:
        EvidenceError: for a line that is JSON and no event, or a file that must not be trusted.
    """
    place = directory / USAGE
    try:
        lines = read_untrusted(directory, USAGE, USAGE_LIMIT).split(b"\n")
    except FileNotFoundError:
        return Events(())
    except (UnsafeFile, OSError) as error:
        raise EvidenceError(str(place), str(error), FRESH) from error
    events: list[Event] = []
    torn: str | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip(b"\0 \r\t"):
            continue
        if not _is_object(line):
            torn = f"{USAGE} line {number}: cut short after {len(line)} bytes, not counted"
            continue
        events.append(_event(place, number, line))
    return Events(tuple(events), torn)


def _event(place: Path, number: int, line: bytes) -> Event:
    try:
        return Event.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise EvidenceError(f"{place}:{number}", f"{where}: {fault['msg']}", FRESH) from error


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
