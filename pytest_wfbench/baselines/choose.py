"""Which baseline a sweep is compared with: its branch's, then the main line's, then the last release's."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_wfbench.baselines.store import Entry, Store, entries, load
from pytest_wfbench.evidence.baseline import Baseline, Question


def choose(store: Store, branch: str | None, questions: Iterable[Question], sweep_id: str) -> Baseline | None:
    """Return the newest baseline that shares a question with a sweep and is older than it; none where none does.

    The branch's are looked through first, then the main line's, then the releases'. What a baseline has of other
    questions is left out. Ids of sweeps begin with the time of their start.

    Raises:
        StoreError, EvidenceError: when the store, or a baseline on the way, cannot be read.
    """
    wanted = frozenset(questions)
    for entry in walk(entries(store), branch):
        if entry.sweep_id < sweep_id:
            found = load(store, entry)
            if shared := found.shared(wanted):
                return found.model_copy(update={"entries": shared})
    return None


def walk(filed: Iterable[Entry], branch: str | None) -> tuple[Entry, ...]:
    """Return the entries in the order in which they are looked at."""
    newest = sorted(filed, key=lambda entry: entry.sweep_id, reverse=True)
    own = [entry for entry in newest if entry.kind == "branch" and entry.name == branch]
    return (*own, *(entry for kind in ("main", "release") for entry in newest if entry.kind == kind))
