"""Which finding speaks of which label: the one best assignment, whatever the order of the lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pytest_wfbench.scoring.artifact import Finding, Severity
from pytest_wfbench.scoring.exact import best_assignment
from pytest_wfbench.scoring.labels import Label

WEIGHTS: Mapping[Severity, int] = {"critical": 8, "high": 5, "medium": 2, "low": 1}
WIDENED = 3
LEAST_SPREAD = 50
# scipy computes in float64; sums and differences of whole numbers below this are exact in it.
_EXACT_IN_FLOATS = 1 << 52


class Pair(NamedTuple):
    """A finding and the label it is matched with."""

    finding: Finding
    label: Label

    @property
    def credit(self) -> int:
        """What it earns."""
        return min(WEIGHTS[self.finding.severity], WEIGHTS[self.label.severity])

    @property
    def over(self) -> int:
        """By how much the finding over-rates the label."""
        return max(0, WEIGHTS[self.finding.severity] - WEIGHTS[self.label.severity])

    @property
    def same_severity(self) -> bool:
        """Whether both are rated alike."""
        return self.finding.severity == self.label.severity

    @property
    def same_category(self) -> bool:
        """Whether both are of one category, letters' case aside."""
        return self.finding.category.casefold() == self.label.category.casefold()

    @property
    def both_blocking(self) -> bool:
        """Whether both are rated critical or high."""
        return is_blocking(self.finding.severity) and is_blocking(self.label.severity)

    @property
    def distance(self) -> int:
        """Lines between the two, at most ``WIDENED`` where they are eligible."""
        return max(0, self.label.line_start - self.finding.end_line, self.finding.line - self.label.line_end)

    def criteria(self) -> tuple[int, ...]:
        """What is maximised after the number of pairs, first things first; none is below 0."""
        return (
            self.credit,
            max(WEIGHTS.values()) - self.over,
            int(self.both_blocking),
            int(self.same_severity),
            int(self.same_category),
            WIDENED - self.distance,
        )


def is_blocking(severity: Severity) -> bool:
    """Whether a severity is critical or high; an artifact's own flag says nothing."""
    return severity in ("critical", "high")


def is_eligible(finding: Finding, label: Label) -> bool:
    """Whether a finding may speak of a label: same path, lines that meet when widened, and localised."""
    span, wanted = finding.end_line - finding.line + 1, label.line_end - label.line_start + 1
    return (
        finding.path == label.path
        and span <= max(LEAST_SPREAD, 2 * wanted)
        and finding.line - WIDENED <= label.line_end
        and finding.end_line + WIDENED >= label.line_start
    )


def match(findings: Sequence[Finding], labels: Sequence[Label]) -> tuple[Pair, ...]:
    """Return the pairs of the best assignment: most pairs, then the criteria of ``Pair`` summed, in their order."""
    edges = {
        (row, column): Pair(finding, label)
        for row, finding in enumerate(findings)
        for column, label in enumerate(labels)
        if is_eligible(finding, label)
    }
    return tuple(pair for part in _components(edges) for pair in _best(part))


def _components(edges: Mapping[tuple[int, int], Pair]) -> Iterator[dict[tuple[int, int], Pair]]:
    """Yield the connected parts of the graph of eligible pairs."""
    leader: dict[tuple[str, int], tuple[str, int]] = {}

    def find(node: tuple[str, int]) -> tuple[str, int]:
        while (above := leader.setdefault(node, node)) != node:
            leader[node] = leader[above]
            node = above
        return node

    for row, column in edges:
        leader[find(("finding", row))] = find(("label", column))
    parts: dict[tuple[str, int], dict[tuple[int, int], Pair]] = {}
    for (row, column), pair in edges.items():
        parts.setdefault(find(("finding", row)), {})[row, column] = pair
    yield from parts.values()


def _best(part: Mapping[tuple[int, int], Pair]) -> Iterator[Pair]:
    rows = sorted({row for row, _ in part})
    columns = sorted({column for _, column in part})
    weights, largest = _weights(part, min(len(rows), len(columns)))
    place = {column: index for index, column in enumerate(columns)}
    # Where nothing is eligible the weight is 0, and an assignment of it counts for nothing.
    table: NDArray[np.int64] = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for index, row in enumerate(rows):
        for column in columns:
            table[index, place[column]] = weights.get((row, column), 0)
    chosen = linear_sum_assignment(table, maximize=True) if largest < _EXACT_IN_FLOATS else best_assignment(table)
    for index, column_index in zip(*chosen, strict=True):
        pair = part.get((rows[int(index)], columns[int(column_index)]))
        if pair is not None:
            yield pair


def _weights(part: Mapping[tuple[int, int], Pair], most: int) -> tuple[dict[tuple[int, int], int], int]:
    """Write all criteria as the digits of one number, of which no sum overflows; also the largest sum there can be."""
    told = {key: pair.criteria() for key, pair in part.items()}
    bases = [most * max(digits) + 1 for digits in zip(*told.values(), strict=True)]
    weights = {}
    for key, digits in told.items():
        number = 1
        for digit, base in zip(digits, bases, strict=True):
            number = number * base + digit
        weights[key] = number
    return weights, most * max(weights.values())
