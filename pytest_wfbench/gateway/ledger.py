"""What was spent, and whether there is anything left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.manifest import Spending
from pytest_wfbench.gateway.api import Terms, Whose
from pytest_wfbench.usage.cell import SIDE_SESSIONS
from pytest_wfbench.usage.charge import Answering, charge
from pytest_wfbench.usage.prices import PriceTable

# Sums of prices are not exact.
TOLERANCE = 1e-9


class Spent(NamedTuple):
    """A budget that is spent: whose doing that was, and a sentence."""

    whose: Whose
    told: str


@dataclass
class Ledger:
    """Adds up what requests are charged, a cell and in all.

    Preflight and judge count to the sweep's budget alone. ``answering`` says who may answer a requested model.
    """

    terms: Terms
    prices: PriceTable
    answering: Mapping[str, tuple[Answering, ...]]
    charged: float = 0.0
    assumed: float = 0.0
    cells: dict[str, float] = field(default_factory=dict)
    broken_off: dict[str, float] = field(default_factory=dict)

    def charge(self, event: Event) -> None:
        """Count a request that has ended."""
        expected = self.answering.get(event.requested_model or "", ())
        usd, assumed = charge(event, self.prices, expected)
        self.charged += usd
        self.assumed += usd if assumed else 0.0
        if event.session not in SIDE_SESSIONS:
            self.cells[event.cell_id] = self.cells.get(event.cell_id, 0.0) + usd
            if assumed and event.status in ("cut", "failure"):
                self.broken_off[event.cell_id] = self.broken_off.get(event.cell_id, 0.0) + usd

    def restore(self, events: Iterable[Event], sweep_id: str) -> None:
        """Count what a sweep had spent before this process began."""
        for event in events:
            if event.sweep_id == sweep_id:
                self.charge(event)

    def spent(self, cell_id: str, session: str) -> Spent | None:
        """Return the budget that leaves nothing for a session, if there is one; the cell's own comes first."""
        most, used = self.terms.cell_max_cost, self.cells.get(cell_id, 0.0)
        if most is not None and session not in SIDE_SESSIONS and used >= most - TOLERANCE:
            own = used - self.broken_off.get(cell_id, 0.0) >= most - TOLERANCE
            told = f"the cell's budget of ${most:g} is spent (--wfbench-cell-max-cost)"
            return Spent("cell" if own else "provider", told)
        whole = self.sweep_spent()
        return Spent("sweep", whole) if whole else None

    def sweep_spent(self) -> str | None:
        """Say that the sweep's budget is spent, or none while it is not."""
        most = self.terms.max_cost
        if most is None or self.charged < most - TOLERANCE:
            return None
        return f"the sweep's budget of ${most:g} is spent (--wfbench-max-cost)"

    def account(self) -> Spending:
        """Return what the sweep's manifest says of it."""
        most = self.terms.max_cost
        return Spending(
            max_cost=most,
            cell_max_cost=self.terms.cell_max_cost,
            charged=round(self.charged, 9),
            assumed=round(self.assumed, 9),
            overshoot=None if most is None else round(max(self.charged - most, 0.0), 9),
        )
