"""Two arms on the same tasks: pairs, per-task medians, and by how much one improves on the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from pytest_wfbench.evidence.store import Run
from pytest_wfbench.statistics.aggregate import Measure, Number, count_resolved, graded, median_of, unit_name


@dataclass(frozen=True)
class Side:
    """One arm's runs of one task."""

    runs: tuple[Run, ...]

    @cached_property
    def valid(self) -> tuple[Run, ...]:
        """The graded runs."""
        return graded(self.runs)

    @cached_property
    def resolved(self) -> int:
        """How many of them passed."""
        return count_resolved(self.valid)

    def median(self, measure: Measure) -> Number | None:
        """Return the median of a measure over the valid runs, unknown where any is."""
        return median_of(self.valid, measure)


@dataclass(frozen=True)
class Pair:
    """One task and variation under an incumbent and a candidate."""

    task: str
    variation: int
    incumbent: Side
    candidate: Side

    @property
    def name(self) -> str:
        """The task as reports name it."""
        return unit_name(self.task, self.variation)

    def improvement(self, measure: Measure) -> float | None:
        """Return the percent by which the candidate's median is lower; none where unknown or the incumbent's is 0."""
        return improvement(self.incumbent.median(measure), self.candidate.median(measure))


def improvement(incumbent: Number | None, candidate: Number | None) -> float | None:
    """Return 100 · (incumbent − candidate) / incumbent, or none where it is undefined."""
    if incumbent is None or candidate is None or incumbent == 0:
        return None
    return 100.0 * (incumbent - candidate) / incumbent


def median_improvement(pairs: Sequence[Pair], measure: Measure) -> float | None:
    """Return the median of the tasks' improvements in percent, or none where one is unknown or there is none."""
    values = [pair.improvement(measure) for pair in pairs]
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def pair_up(
    units: Iterable[tuple[str, int]], runs: Sequence[Run], incumbent: str, candidate: str, subject: str
) -> tuple[Pair, ...]:
    """Return a pair per (task, variation), sorted; a side without runs is empty, not left out."""
    held: dict[tuple[str, int, str, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.key):
        held[run.key[:4]].append(run)

    def side(unit: tuple[str, int], arm: str) -> Side:
        return Side(tuple(held.get((*unit, arm, subject), ())))

    return tuple(Pair(*unit, side(unit, incumbent), side(unit, candidate)) for unit in sorted(set(units)))
