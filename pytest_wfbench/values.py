"""How many values a JSON text holds, before it is read: each costs who reads it up to two hundred bytes."""

from __future__ import annotations

import re

_MARKS = (b"[", b"{", b",")
# What is never closed ends with the text: looked for once, it is not looked for again.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def values_in(text: bytes, enough: int) -> int:
    """Return the number of values of a text in UTF-8, nearly; up to ``enough``, what strings hold is counted too."""
    rough = _marks(text)
    return rough if rough <= enough else _marks(_STRING.sub(b"", text))


def _marks(text: bytes) -> int:
    return sum(text.count(mark) for mark in _MARKS)
