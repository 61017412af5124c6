"""What the cells of a finished sweep cost by another price table: the evidence is read, never touched."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Run, collect_runs
from pytest_wfbench.usage.cell import SIDE_SESSIONS, cell_usage
from pytest_wfbench.usage.prices import Price, PriceTable


class Repriced(NamedTuple):
    """The cells of one arm and subject: USD as their rows have it and as the table has it; none where any is unknown.

    Both are of all attempts of a cell, each of which was paid for. ``unknown`` counts the cells whose cost the table
    cannot tell.
    """

    arm: str
    subject: str
    cells: int
    recorded: float | None
    repriced: float | None
    unknown: int


class Bill(NamedTuple):
    """A sweep by a price table; ``unpriced`` names the answering models that the table has no price of."""

    table: str
    lines: tuple[Repriced, ...]
    unpriced: tuple[str, ...]


def reprice(rows: Iterable[Row], events: Iterable[Event], open_cells: Mapping[str, int], table: PriceTable) -> Bill:
    """Price every cell again from the events of its arm's sessions, whichever attempt they are of.

    ``open_cells`` counts calls that never ended, by the id of their cell.

    Raises:
        UsageError: for an event whose usage contradicts itself; it names the event.
    """
    by_cell: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.session not in SIDE_SESSIONS:
            by_cell[event.cell_id].append(event)
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in collect_runs(rows):
        groups[run.row.arm, run.row.subject].append(run)
        by_cell.setdefault(run.row.cell_id, [])
    ids = [run.row.cell_id for group in groups.values() for run in group]
    costs = {cell_id: _cost(by_cell[cell_id], open_cells.get(cell_id, 0), table) for cell_id in ids}
    lines = (_line(arm, subject, group, costs) for (arm, subject), group in sorted(groups.items()))
    return Bill(table.label, tuple(lines), tuple(_unpriced(by_cell, table)))


def open_calls_by_cell(cells: Iterable[str]) -> Mapping[str, int]:
    """Count open calls by the id of their cell."""
    return Counter(cells)


def _line(arm: str, subject: str, runs: Sequence[Run], costs: Mapping[str, float | None]) -> Repriced:
    again = [costs[run.row.cell_id] for run in runs]
    return Repriced(
        arm=arm,
        subject=subject,
        cells=len(runs),
        recorded=_total([row.cost_usd for run in runs for row in run.attempts]),
        repriced=_total(again),
        unknown=sum(cost is None for cost in again),
    )


def _cost(events: Sequence[Event], open_calls: int, table: PriceTable) -> float | None:
    return None if cell_usage(events, open_calls).incomplete else table.cell_cost(events, open_calls)


def _total(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def _unpriced(by_cell: Mapping[str, Sequence[Event]], table: PriceTable) -> list[str]:
    answered = {(e.answered_model, e.provider) for events in by_cell.values() for e in events if e.answered_model}
    return sorted({model for model, provider in answered if model and not _priced(table.price(model, provider))})


def _priced(price: Price | None) -> bool:
    """An entry whose numbers are missing, negative or texts is as good as none."""
    return price is not None and price.input is not None and price.output is not None
