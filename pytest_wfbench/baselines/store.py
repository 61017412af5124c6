"""A store of baselines: named bytes in a directory or on a branch, and what their names say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, get_args
from urllib.parse import quote, unquote

from pytest_wfbench.evidence.baseline import SWEEP_ID, Baseline, BaselineKind, parse_baseline

KINDS: tuple[BaselineKind, ...] = get_args(BaselineKind)
SUFFIX = ".json"


class StoreError(Exception):
    """A store that cannot be read or written. The message is one line and names the remedy."""


class Store(Protocol):
    """Named bytes; a name is ``<kind>/<name>/<sweep id>.json`` and its bytes never change."""

    @property
    def shown(self) -> str:
        """The store as messages name it."""
        ...

    def names(self) -> Iterable[str]:
        """Return all names. A store that was never written has none."""
        ...

    def read(self, name: str) -> bytes:
        """Return the bytes of a name. Raises StoreError."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Put bytes there; several may do so at once. Raises StoreError."""
        ...


@dataclass(frozen=True, order=True)
class Entry:
    """A filed sweep by its place in the store; entries of one kind and name sort from old to new."""

    kind: str
    name: str
    sweep_id: str

    @property
    def path(self) -> str:
        """Its name in the store."""
        segment = quote(self.name, safe="")
        # No name is hidden, or leads to the parent.
        safe = f"%2E{segment[1:]}" if segment.startswith(".") else segment
        return f"{self.kind}/{safe}/{self.sweep_id}{SUFFIX}"


def entries(store: Store) -> tuple[Entry, ...]:
    """Return all filed sweeps, sorted by kind and name, the newest first. What is no baseline by its name is none."""
    found = sorted(set(_entries(store.names())), key=lambda entry: entry.sweep_id, reverse=True)
    return tuple(sorted(found, key=lambda entry: (KINDS.index(_kind(entry.kind)), entry.name)))


def _entries(names: Iterable[str]) -> Iterator[Entry]:
    for path in names:
        parts = path.split("/")
        if len(parts) == 3 and parts[0] in KINDS and parts[2].endswith(SUFFIX):
            entry = Entry(parts[0], unquote(parts[1]), parts[2].removesuffix(SUFFIX))
            if SWEEP_ID.match(entry.sweep_id) and entry.path == path:
                yield entry


def _kind(text: str) -> BaselineKind:
    return next(kind for kind in KINDS if kind == text)


def load(store: Store, entry: Entry) -> Baseline:
    """Return a filed sweep.

    Raises:
        StoreError: when it cannot be read.
        EvidenceError: when it is no baseline.
    """
    return parse_baseline(store.read(entry.path), f"{store.shown}: {entry.path}")


def file(store: Store, baseline: Baseline) -> Entry:
    """File a sweep; filed twice it is there once. Raises StoreError."""
    entry = Entry(baseline.kind, baseline.name, baseline.sweep_id)
    store.write(entry.path, baseline.to_json().encode())
    return entry
