"""Checks of an answer, which are free: what it says, which tools were called, which files are there."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import regex

from pytest_wfbench.matrix.checks import Check
from pytest_wfbench.matrix.jsonpath import look_up
from pytest_wfbench.sandbox.spec import WORKSPACE, Command, Mount, Sandbox

PATTERN_SECONDS = 2.0
FILE_SECONDS = 30.0
SHOWN = 80
FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A sign belongs to a number where no word or number stands before it; commas part thousands only.
NUMBER = re.compile(
    r"(?:(?<![\w.,)])[+-])?(?<![\w.,])(?:\d{1,3}(?:,\d{3}){1,12}(?!,?\d)|\d{1,40}(?!\d))(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?"
)
# Prints the size of each regular file, or a dash; a link is followed nowhere on the way to it.
SIZES = r"""for path; do
  whole=$path; so_far=.; ok=1
  while [ -n "$path" ]; do
    part=${path%%/*}; case "$path" in */*) path=${path#*/};; *) path=;; esac
    so_far=$so_far/$part; [ -L "$so_far" ] && ok=
  done
  if [ -n "$ok" ] && [ -f "./$whole" ]; then stat -c %s "./$whole"; else echo -; fi
done
"""


class Unmeasured(Exception):
    """The sandbox that was to look at files did not run; the message says why."""


@dataclass(frozen=True)
class Given:
    """What there is to check: the answer, how often each tool was called, and the bytes of files that are there."""

    answer: str
    tools: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def failed_checks(checks: Sequence[Check], given: Given) -> Iterator[str]:
    """Yield what each failed check says of itself."""
    for check in checks:
        found = FINDERS[check.subject](check, given)
        if found is None:
            yield f"{described(check)}: it took longer than {PATTERN_SECONDS:g} s to look for"
        elif found is check.not_:
            yield f"{described(check)}: {'found' if found else 'not found'}"


def described(check: Check) -> str:
    """Return a check as a few words."""
    value: Any = getattr(check, check.subject)
    if check.number is not None:
        value = f"{check.number.value:g} ± {check.number.tolerance:g}"
    elif check.json_path is not None and check.equals is not None:
        value = f"{check.json_path} = {json.dumps(check.equals)}"
    elif check.file is not None:
        value = f"{check.file} of at least {check.min_bytes} bytes"
    text = str(value)
    short = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return f"{'not ' if check.not_ else ''}{check.subject} {short}"


def _contains(check: Check, given: Given) -> bool:
    return (check.contains or "") in given.answer


def _regex(check: Check, given: Given) -> bool | None:
    """Search for a pattern, in bounded time: a pattern may be slow on an answer that was made for it."""
    try:
        return regex.search(check.regex or "", given.answer, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        return None


def _json_path(check: Check, given: Given) -> bool:
    for value in _values(given.answer):
        found = look_up(value, check.json_path or "$")
        if found and (check.equals is None or any(same(one, check.equals) for one in found)):
            return True
    return False


def _values(answer: str) -> Iterator[Any]:
    """Yield the JSON of an answer: all of it, else that of its last fenced block that is JSON."""
    for text in (answer, *reversed(FENCED.findall(answer))):
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            continue
        return


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def numbers_in(text: str) -> Iterator[Decimal]:
    """Yield the numbers that a text states: ``1,234.50``, ``-3``, ``6e3``."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    for found in NUMBER.finditer(plain):
        yield Decimal(found[0].replace(",", ""))


def _number(check: Check, given: Given) -> bool:
    number = check.number
    assert number is not None
    value, tolerance = Decimal(str(number.value)), Decimal(str(number.tolerance))
    low, high = value - tolerance, value + tolerance
    return any(low <= one <= high for one in numbers_in(given.answer))


def _tool_used(check: Check, given: Given) -> bool:
    return given.tools.get(check.tool_used or "", 0) > 0


def _file(check: Check, given: Given) -> bool:
    return given.sizes.get(check.file or "", -math.inf) >= check.min_bytes


FINDERS: Mapping[str, Callable[[Check, Given], bool | None]] = {
    "contains": _contains,
    "regex": _regex,
    "json_path": _json_path,
    "number": _number,
    "tool_used": _tool_used,
    "file": _file,
}


def file_sizes(checks: Sequence[Check], mounts: tuple[Mount, ...], sandbox: Sandbox) -> dict[str, int]:
    """Return the bytes of the files that checks name and that are there, seen in a sandbox with these mounts.

    Raises:
        Unmeasured: when it did not run.
    """
    names = list(dict.fromkeys(check.file for check in checks if check.file))
    if not names:
        return {}
    ended = sandbox.run(Command(("/bin/sh", "-c", SIZES, "sh", *names), mounts, FILE_SECONDS, cwd=WORKSPACE))
    lines = ended.stdout.decode(errors="replace").split()
    if not ended.ok or len(lines) != len(names):
        raise Unmeasured(f"files could not be looked at: {ended.stderr.decode(errors='replace').strip()[-200:]}")
    return {name: int(size) for name, size in zip(names, lines, strict=True) if size.isdecimal()}
