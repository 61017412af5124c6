"""Sweeps that might have been: both sides drawn from the incumbent's own runs, and ruled on by the policy itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Run
from pytest_wfbench.promotion.rules import Comparison, Policy
from pytest_wfbench.statistics.paired import Pair, Side

SEED = 20_260_101

Shift = Callable[[Run], Run]


@dataclass(frozen=True)
class Promoted:
    """Of ``draws`` simulated sweeps: in how many the candidate was promoted, and on how many the gate could rule."""

    promoted: int
    ruled: int
    draws: int


def promoted(
    policy: Policy, comparison: Comparison, draws: int, shift: Shift | None = None, seed: int = SEED
) -> Promoted:
    """Simulate ``draws`` sweeps of a candidate that is the incumbent, its runs changed by ``shift``; seeded.

    Per task both sides draw, with replacement, as many of the incumbent's valid runs as there are.
    """
    pools = [_pool(pair, shift) for pair in comparison.pairs]
    chance = random.Random(seed)
    decisions = [
        policy.rule(replace(comparison, pairs=tuple(pool.draw(chance) for pool in pools))).decision
        for _ in range(draws)
    ]
    return Promoted(decisions.count("promote"), draws - decisions.count("insufficient_evidence"), draws)


@dataclass(frozen=True)
class _Pool:
    pair: Pair
    before: tuple[Run, ...]
    after: tuple[Run, ...]

    def draw(self, chance: random.Random) -> Pair:
        count = len(self.before)
        return replace(
            self.pair,
            incumbent=Side(tuple(chance.choices(self.before, k=count)) if count else ()),
            candidate=Side(tuple(chance.choices(self.after, k=count)) if count else ()),
        )


def _pool(pair: Pair, shift: Shift | None) -> _Pool:
    runs = tuple(sorted(pair.incumbent.valid, key=_content))
    return _Pool(pair, runs, tuple(map(shift, runs)) if shift else runs)


def _content(run: Run) -> tuple[str, ...]:
    """What a run measured, by which it is ordered: which repeat it was must not decide what is drawn."""
    row = run.row
    costs = [attempt.cost_usd for attempt in run.attempts]
    measured = (row.outcome, row.kind, row.usage, costs, row.timings.session, row.num_turns)
    return (repr(measured), repr(sorted((row.review or {}).items())))


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _cost(row: Row, keep: float) -> Row:
    return row.model_copy(update={"cost_usd": _times(row.cost_usd, keep)})


def _output(row: Row, keep: float) -> Row:
    return row.model_copy(update={"usage": row.usage.model_copy(update={"output": _times(row.usage.output, keep)})})


def _session(row: Row, keep: float) -> Row:
    timings = row.timings.model_copy(update={"session": _times(row.timings.session, keep)})
    return row.model_copy(update={"timings": timings})


def _turns(row: Row, keep: float) -> Row:
    return row.model_copy(update={"num_turns": _times(row.num_turns, keep)})


_SCALED: Mapping[str, Callable[[Row, float], Row]] = MappingProxyType(
    {"cost_usd": _cost, "output_tokens": _output, "duration_s": _session, "num_turns": _turns}
)


def cheaper(metric: str, share: float) -> Shift:
    """Return what makes a run's metric smaller by a share, 0..1, of itself."""
    keep = 1 - share

    def shift(run: Run) -> Run:
        return Run(tuple(_SCALED[metric](row, keep) for row in run.attempts))

    return shift


def better(points: float) -> Shift:
    """Return what adds points to a run's weighted F1, up to 1."""

    def shift(run: Run) -> Run:
        review = run.row.review or {}
        before = review.get("weighted_f1")
        if not isinstance(before, int | float):
            return run
        row = run.row.model_copy(update={"review": {**review, "weighted_f1": min(1.0, before + points)}})
        return Run((*run.attempts[:-1], row))

    return shift
