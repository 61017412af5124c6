"""The part of JSONPath (RFC 9535) that checks need: names, positions and all of a list or an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

LONGEST, STEPS = 1000, 100
_STEP = re.compile(
    r"""\.(?P<bare>[A-Za-z_\u0080-\U0010ffff][\w-]{0,200})"""
    r"""|\[(?P<index>-?[0-9]{1,9})\]"""
    r"""|(?P<all>\[\*\]|\.\*)"""
    r"""|\['(?P<single>(?:[^'\\]|\\['\\]){0,200})'\]"""
    r"""|\["(?P<double>(?:[^"\\]|\\["\\]){0,200})"\]"""
)


class BadPath(ValueError):
    """A path outside the part that is known; the message says where."""


class Every:
    """The step to all elements."""


Step = str | int | type[Every]


def read_path(text: str) -> tuple[Step, ...]:
    """Return the steps of a path. Raises BadPath."""
    if not text.startswith("$") or len(text) > LONGEST:
        raise BadPath("it does not begin with $" if text[:1] != "$" else "it is too long")
    steps: list[Step] = []
    place = 1
    while place < len(text):
        found = _STEP.match(text, place)
        if found is None or len(steps) == STEPS:
            raise BadPath(f"at {text[place : place + 20]!r}")
        steps.append(_step(found))
        place = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["all"]:
        return Every
    if found["index"]:
        return int(found["index"])
    quoted = found["single"] if found["single"] is not None else found["double"]
    return found["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)


def look_up(value: Any, path: str) -> list[Any]:
    """Return everything that a path leads to in a JSON value. Raises BadPath."""
    found = [value]
    for step in read_path(path):
        found = [below for one in found for below in _below(one, step)]
    return found


def _below(value: Any, step: Step) -> Iterable[Any]:
    if isinstance(value, dict):
        return _of_object(value, step)
    return _of_list(value, step) if isinstance(value, list) else ()


def _of_object(value: dict[str, Any], step: Step) -> Iterator[Any]:
    if step is Every:
        yield from value.values()
    elif isinstance(step, str) and step in value:
        yield value[step]


def _of_list(value: list[Any], step: Step) -> Iterator[Any]:
    if step is Every:
        yield from value
    elif isinstance(step, int) and -len(value) <= step < len(value):
        yield value[step]
