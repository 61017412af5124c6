"""What an apply would change, as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from pytest_wfbench.apply.journal import Change
from pytest_wfbench.matrix.problems import printable


def preview(change: Change, before: bytes, after: bytes) -> Iterator[str]:
    """Yield the lines of a unified diff; what does not print is escaped."""
    old = f"a/{change.path}" if change.base is not None else "/dev/null"
    lines = difflib.unified_diff(_lines(before), _lines(after), old, f"b/{change.path}", lineterm="")
    for line in lines:
        yield printable(line.replace("\t", "    "))


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "backslashreplace").splitlines()
