"""What several runs of each task say of an arm together: pass@k and pass^k, averaged over tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_wfbench.statistics.aggregate import Summary
from pytest_wfbench.statistics.uncertain import Bounds

LEVEL = 0.95


class Repeats(NamedTuple):
    """One arm under one subject, over its tasks with a valid run.

    ``k`` is the least number of valid runs of any of its tasks. ``any_`` is the mean over tasks of the unbiased
    estimate that at least one of k runs passes, ``all_`` that all do. ``share`` is Wilson's interval of the resolved
    runs, as if they were independent; the others are bootstrapped over tasks, and none with fewer than 8.
    """

    subject: str
    arm: str
    tasks: int
    k: int
    resolved: int
    valid: int
    share: Bounds | None
    any_: float
    any_interval: Bounds | None
    all_: float
    all_interval: Bounds | None


def repeats_of(summaries: Iterable[Summary]) -> tuple[Repeats, ...]:
    """Return a line for each arm that ran a task more than once, reviews aside; nothing else needs scipy."""
    groups: dict[tuple[str, str], list[Summary]] = defaultdict(list)
    for entry in summaries:
        if entry.kind != "review" and entry.valid:
            groups[entry.key.subject, entry.key.arm].append(entry)
    repeated = {key: held for key, held in groups.items() if min(entry.valid for entry in held) > 1}
    return tuple(_repeats(*key, held) for key, held in repeated.items())


def _repeats(subject: str, arm: str, held: Sequence[Summary]) -> Repeats:
    from pytest_wfbench.statistics import inference

    k = min(entry.valid for entry in held)
    any_ = [inference.pass_at_k(entry.valid, entry.resolved, k) or 0.0 for entry in held]
    all_ = [inference.pass_hat_k(entry.valid, entry.resolved, k) or 0.0 for entry in held]
    resolved, valid = sum(entry.resolved for entry in held), sum(entry.valid for entry in held)
    return Repeats(
        subject=subject,
        arm=arm,
        tasks=len(held),
        k=k,
        resolved=resolved,
        valid=valid,
        share=_bounds(inference.share_interval(resolved, valid, LEVEL)),
        any_=inference.mean(any_),
        any_interval=_bounds(inference.mean_interval(any_, LEVEL)),
        all_=inference.mean(all_),
        all_interval=_bounds(inference.mean_interval(all_, LEVEL)),
    )


def _bounds(found: tuple[float, float, float] | None) -> Bounds | None:
    return Bounds(low=found[0], high=found[1], level=found[2]) if found else None
