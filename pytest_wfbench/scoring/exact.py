"""The assignment of greatest weight in whole numbers, for weights that floating point cannot hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FAR = np.iinfo(np.int64).max


def best_assignment(weights: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Return rows and columns of an assignment of greatest sum (shortest augmenting paths over 64-bit numbers).

    Weights are at least 0, and a row's or column's largest times their number is below 2^62.
    """
    if weights.shape[0] > weights.shape[1]:
        columns, rows = best_assignment(weights.T)
        return rows, columns
    costs = weights.max(initial=0) - weights
    count, width = costs.shape
    # Row and column 0 stand for "none yet"; potentials keep every reduced cost at 0 or more.
    row_potential = np.zeros(count + 1, dtype=np.int64)
    column_potential = np.zeros(width + 1, dtype=np.int64)
    owner = np.zeros(width + 1, dtype=np.int64)
    for row in range(1, count + 1):
        _augment(costs, row, row_potential, column_potential, owner)
    taken = [(int(owner[column]) - 1, column - 1) for column in range(1, width + 1) if owner[column]]
    return [row for row, _ in taken], [column for _, column in taken]


def _augment(
    costs: NDArray[np.int64],
    row: int,
    row_potential: NDArray[np.int64],
    column_potential: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> None:
    """Give one more row a column, moving others along the cheapest path."""
    width = costs.shape[1]
    nearest = np.full(width + 1, _FAR, dtype=np.int64)
    before = np.zeros(width + 1, dtype=np.int64)
    seen = np.zeros(width + 1, dtype=bool)
    owner[0], column = row, 0
    while owner[column]:
        seen[column] = True
        at = owner[column]
        reduced = costs[at - 1] - row_potential[at] - column_potential[1:]
        open_ = ~seen[1:]
        closer = open_ & (reduced < nearest[1:])
        nearest[1:][closer] = reduced[closer]
        before[1:][closer] = column
        following = 1 + int(np.argmin(np.where(open_, nearest[1:], _FAR)))
        step = nearest[following]
        row_potential[owner[seen]] += step
        column_potential[seen] -= step
        nearest[1:][open_] -= step
        column = following
    while column:
        previous = int(before[column])
        owner[column] = owner[previous]
        column = previous
