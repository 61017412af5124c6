"""Digests that bind evidence: of bytes, of values and of trees of named bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def digest_bytes(data: bytes) -> str:
    """Return ``sha256:<hex>`` of the bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_value(value: Any) -> str:
    """Return the digest of a JSON value, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


def digest_tree(entries: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of (relative path, bytes) pairs, independent of their order and of where the tree lies."""
    listing = sorted((name, digest_bytes(data)) for name, data in entries)
    return digest_value(listing)


def trace_id(sweep_id: str, cell_id: str) -> str:
    """Return the trace id of a cell: 32 hexadecimal digits, the same whoever computes it."""
    return hashlib.sha256(f"wfbench trace\n{sweep_id}\n{cell_id}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
