"""Which finding speaks of which label: the one best assignment, whatever the order of the lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from pytest_wfbench.scoring.artifact import WEIGHTS, Finding, is_blocking
from pytest_wfbench.scoring.exact import best_assignment
from pytest_wfbench.scoring.labels import Label

WIDENED = 3
LEAST_SPREAD = 50
# scipy computes in float64; sums and differences of whole numbers below this are exact in it.
_EXACT_IN_FLOATS = 1 << 52

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


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


class _Side(NamedTuple):
    """One list as columns: paths and categories by number, lines, weights."""

    path: Numbers
    first: Numbers
    last: Numbers
    weight: Numbers
    category: Numbers


def match(findings: Sequence[Finding], labels: Sequence[Label]) -> tuple[Pair, ...]:
    """Return the pairs of the best assignment.

    Most pairs; then most credit, least over-rating, most pairs that are blocking on both sides, most equal severities,
    most equal categories, least distance, each summed.
    """
    if not findings or not labels:
        return ()
    names: dict[str, int] = {}
    found = _side([(f.path, f.line, f.end_line, WEIGHTS[f.severity], f.category.casefold()) for f in findings], names)
    wanted = _side(
        [(n.path, n.line_start, n.line_end, WEIGHTS[n.severity], n.category.casefold()) for n in labels], names
    )
    eligible = _eligible(found, wanted)
    criteria = _criteria(found, wanted)
    chosen = (pair for part in _components(eligible) for pair in _best(part, eligible, criteria))
    return tuple(Pair(findings[row], labels[column]) for row, column in sorted(chosen))


def is_eligible(finding: Finding, label: Label) -> bool:
    """Whether a finding may speak of a label: same path, lines that meet when widened, and localised."""
    names: dict[str, int] = {}
    found = _side([(finding.path, finding.line, finding.end_line, 0, "")], names)
    return bool(_eligible(found, _side([(label.path, label.line_start, label.line_end, 0, "")], names))[0, 0])


def _side(rows: Sequence[tuple[str, int, int, int, str]], names: dict[str, int]) -> _Side:
    def number(name: str) -> int:
        return names.setdefault(name, len(names))

    # Line numbers are any whole number in JSON; beyond this they are all the same, far away.
    far = 1 << 40
    table = [(number(f"p{p}"), min(a, far), min(b, far), w, number(f"c{c}")) for p, a, b, w, c in rows]
    return _Side(*np.array(table, dtype=np.int64).T)


def _eligible(found: _Side, wanted: _Side) -> Flags:
    span, reach = found.last - found.first + 1, np.maximum(LEAST_SPREAD, 2 * (wanted.last - wanted.first + 1))
    near = (found.first[:, None] - WIDENED <= wanted.last) & (found.last[:, None] + WIDENED >= wanted.first)
    eligible: Flags = (found.path[:, None] == wanted.path) & near & (span[:, None] <= reach)
    return eligible


def _criteria(found: _Side, wanted: _Side) -> tuple[Numbers, ...]:
    """What is maximised after the number of pairs, first things first; nothing is below 0 where a pair is eligible."""
    mine, theirs = found.weight[:, None], wanted.weight[None, :]
    distance = np.maximum(0, np.maximum(wanted.first - found.last[:, None], found.first[:, None] - wanted.last))
    blocking = WEIGHTS["high"]
    return (
        np.minimum(mine, theirs),
        max(WEIGHTS.values()) - np.maximum(0, mine - theirs),
        ((mine >= blocking) & (theirs >= blocking)).astype(np.int64),
        (mine == theirs).astype(np.int64),
        (found.category[:, None] == wanted.category).astype(np.int64),
        WIDENED - distance,
    )


def _components(eligible: Flags) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield rows and columns of each connected part of the graph of eligible pairs that has any."""
    rows, columns = eligible.shape
    graph = np.zeros((rows + columns, rows + columns), dtype=bool)
    graph[:rows, rows:] = eligible
    count, part = connected_components(csr_array(graph), directed=False)
    order = np.argsort(part, kind="stable")
    for members in np.split(order, np.searchsorted(part[order], np.arange(1, count))):
        if len(members) > 1:
            yield members[members < rows], members[members >= rows] - rows


def _best(part: tuple[Numbers, Numbers], eligible: Flags, criteria: tuple[Numbers, ...]) -> Iterator[tuple[int, int]]:
    rows, columns = part
    place = np.ix_(rows, columns)
    weights = _weights(eligible[place], [table[place] for table in criteria])
    exact = _most(weights) < _EXACT_IN_FLOATS
    chosen = linear_sum_assignment(weights, maximize=True) if exact else best_assignment(weights)
    for row, column in zip(*chosen, strict=True):
        # Where nothing is eligible the weight is 0, and an assignment of it counts for nothing.
        if weights[row, column]:
            yield int(rows[row]), int(columns[column])


def _weights(eligible: Flags, criteria: Sequence[Numbers]) -> Numbers:
    """Write one pair, then all criteria, as the digits of a number, to a base that no sum of any digit reaches.

    The best assignments have the same number of pairs, so what all pairs have of a criterion decides nothing.
    """
    weights = eligible.astype(np.int64)
    for table in criteria:
        digit = np.where(eligible, table - table[eligible].min(), 0)
        weights = weights * (_most(digit) + 1) + digit
    return weights


def _most(table: Numbers) -> int:
    """Return what the sum over no assignment exceeds: each row, and each column, gives its largest at most."""
    return int(min(table.max(axis=1).sum(), table.max(axis=0).sum()))
