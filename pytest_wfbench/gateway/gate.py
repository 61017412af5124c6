"""Between door and LiteLLM: who may pass, and when. Budgets, places, and roads that are closed for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.manifest import Traffic
from pytest_wfbench.gateway.api import Terms
from pytest_wfbench.gateway.calls import Call, Session
from pytest_wfbench.gateway.control import Books
from pytest_wfbench.gateway.fairness import Turnstile
from pytest_wfbench.gateway.filter import Refused
from pytest_wfbench.gateway.ledger import Ledger
from pytest_wfbench.gateway.roads import Patience, Roads, pause_of
from pytest_wfbench.usage.charge import Answering
from pytest_wfbench.usage.prices import PriceTable

# nginx's word for a client that closed its request: nobody reads it.
GONE = 499


@dataclass
class Gate:
    """Lets calls through, each time they go up to the provider."""

    ledger: Ledger | None = None
    turnstile: Turnstile = field(default_factory=Turnstile)
    roads: Roads = field(default_factory=Roads)
    waited: float = 0.0

    def begin(
        self, sweep_id: str, terms: Terms, answering: Mapping[str, tuple[Answering, ...]], before: Iterable[Event]
    ) -> None:
        """Take the sweep's terms; ``before`` is what it had asked of providers already. Raises BadPrices."""
        self.turnstile = Turnstile(terms.max_parallel)
        if terms.has_budget:
            self.ledger = Ledger(terms, PriceTable.load(terms.prices), answering)
            self.ledger.restore(before, sweep_id)

    async def admit(self, call: Call, gone: Callable[[], bool]) -> None:
        """Wait until a call may go up; it then has a place, until it ends or gives it back.

        Raises:
            Refused: when a budget is spent, the session ends, or the client has gone.
        """
        session = call.session
        self._afford(session)
        session.stall.change(waiting=1)
        try:
            await self._pass(call, session)
        finally:
            session.stall.change(waiting=-1)
        call.take_place(self.turnstile.leave)
        try:
            # What others spent meanwhile counts: whoever waited must not go beyond the budget one after another.
            self._afford(session)
            if gone():
                raise Refused(GONE, "api_error", "the client has gone")
        except Refused:
            call.give_place_back()
            raise

    async def _pass(self, call: Call, session: Session) -> None:
        """Wait for road and place. The session's end ends the wait."""
        task = asyncio.current_task()
        assert task is not None
        session.waiters.add(task)
        try:
            await self._queue(call.requested_model, session.request.cell_id)
        except asyncio.CancelledError:
            if not session.closed:
                raise
            task.uncancel()
            raise Refused(403, "permission_error", "the session is over") from None
        finally:
            session.waiters.discard(task)

    async def _queue(self, model: str, cell_id: str) -> None:
        while True:
            await self.roads.opened(model)
            await self.turnstile.enter(cell_id)
            if self.roads.is_open(model):
                return
            self.turnstile.leave()

    def _afford(self, session: Session) -> None:
        request = session.request
        spent = self.ledger.spent(request.cell_id, request.labels.session) if self.ledger else None
        if spent is not None:
            session.over_budget = session.over_budget or spent.whose
            raise Refused(403, "permission_error", spent.told)

    def repeats(self, call: Call, status: int, patience: Patience) -> bool:
        """Whether an answer is no more than the provider's word to come again, and the call is to go up once more."""
        return status >= 400 and patience.spend(pause_of(*call.heard))

    def hear(self, call: Call, status: int, retry_after: str | None) -> None:
        """Take the provider's word on when to come again."""
        call.heard = (status, retry_after)
        if (pause := pause_of(status, retry_after)) is not None:
            self.roads.close(call.requested_model, pause)

    def books(self, sessions: Iterable[Session]) -> Books:
        """Return what was spent and waited for; ``sessions`` are those that are open."""
        waited = self.waited + sum(session.stall.seconds for session in sessions)
        traffic = Traffic(waited=round(waited, 3), pauses=self.roads.pauses())
        return Books(spending=self.ledger.account() if self.ledger else None, traffic=traffic)
