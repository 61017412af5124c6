"""A provider's usage object in the one vocabulary of the row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES, UNSEEN, StreamReader


class UsageError(ValueError):
    """Usage that must not be guessed at."""


class UnknownWire(UsageError):
    """A wire format nobody taught us."""


class NegativeInput(UsageError):
    """Cached tokens exceed the whole input."""


def _count(native: Mapping[str, Any], *path: str) -> int | None:
    value: Any = native
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _anthropic(native: Mapping[str, Any]) -> Usage:
    ordinary = _count(native, "input_tokens")
    read = _count(native, "cache_read_input_tokens")
    write = _count(native, "cache_creation_input_tokens")
    known = ordinary is not None and read is not None and write is not None
    return Usage(
        ordinary_input=ordinary,
        cache_read_input=read,
        cache_write_input=write,
        total_input=ordinary + read + write if known else None,  # type: ignore[operator]
        output=_count(native, "output_tokens"),
    )


def _openai(native: Mapping[str, Any], whole: str, details: str, output: str, output_details: str) -> Usage:
    total = _count(native, whole)
    read = _count(native, details, "cached_tokens")
    write = _count(native, details, "cache_write_tokens")
    ordinary = None if total is None or read is None or write is None else total - read - write
    if ordinary is not None and ordinary < 0:
        raise NegativeInput(
            f"negative ordinary input: {total} total, {read} read from and {write} written to the cache"
        )
    return Usage(
        ordinary_input=ordinary,
        cache_read_input=read,
        cache_write_input=write,
        total_input=total,
        output=_count(native, output),
        reasoning_output=_count(native, output_details, "reasoning_tokens"),
    )


def _responses(native: Mapping[str, Any]) -> Usage:
    return _openai(native, "input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details")


def _chat(native: Mapping[str, Any]) -> Usage:
    return _openai(native, "prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details")


NORMALISERS: Mapping[str, Callable[[Mapping[str, Any]], Usage]] = {
    ANTHROPIC: _anthropic,
    RESPONSES: _responses,
    CHAT: _chat,
    # LiteLLM's callback reports in the chat format, whatever the provider spoke.
    UNSEEN: _chat,
}


def normalise(wire: str, native: Mapping[str, Any] | None, event: str = "") -> Usage:
    """Return a native usage object in neutral names; a missing, null, boolean or non-integer field is none.

    Args:
        wire: the wire format it came in.
        native: the object as the provider sent it; none if it sent none.
        event: the call id to name in an error.

    Raises:
        UnknownWire: for a format that is not in the table.
        NegativeInput: when the cached tokens exceed the whole.
    """
    normaliser = NORMALISERS.get(wire)
    if normaliser is None:
        raise UnknownWire(f"unknown wire format {wire!r}: known are {', '.join(sorted(NORMALISERS))}")
    try:
        return normaliser(native or {})
    except NegativeInput as error:
        raise NegativeInput(f"event {event}: {error}" if event else str(error)) from None


def normalise_document(wire: str, text: str) -> Usage:
    """Normalise what a file holds: a usage object, ``null``, a whole answer with a ``usage``, or a recorded stream.

    Raises:
        UsageError: as ``normalise``; also when the text is none of these.
    """
    if wire not in NORMALISERS:
        return normalise(wire, None)
    if text.lstrip().startswith(("event:", "data:")):
        reader = StreamReader(wire)
        reader.feed(text.encode() + b"\n\n")
        return normalise(wire, reader.reading().usage)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError(f"not JSON: {error}") from None
    if document is not None and not isinstance(document, dict):
        raise UsageError("not a usage object: expected a JSON object or null")
    return normalise(wire, document["usage"] if document and "usage" in document else document)
