"""The table that door and tap share: sessions, and the calls that pass them. The gateway's only state."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.gateway.api import Claims, Conversation, Event, OpenRequest, SessionUsage, Whose
from pytest_wfbench.gateway.cassette import Script
from pytest_wfbench.gateway.events import Sink
from pytest_wfbench.gateway.fallback import Report
from pytest_wfbench.gateway.keys import Claim
from pytest_wfbench.gateway.ledger import Ledger
from pytest_wfbench.gateway.load import Load
from pytest_wfbench.gateway.stall import Stall


@dataclass(frozen=True)
class Target:
    """Where a requested model goes: the provider, its own name for the model, and a script if it is replayed."""

    provider: str
    model: str
    script: Script | None = None


@dataclass
class Call:
    """One request of a client, from the door's admission to the end of all it caused.

    ``heard`` is the status of the provider's last answer, and its word on when to come again: LiteLLM does not pass
    that on. ``sent`` counts the attempts before the last time the call went up, ``max_output`` and ``body_bytes`` are
    the event's.
    """

    id: str
    session: Session
    target: Target
    requested_model: str
    claims: Claims
    conversation: Conversation
    attempts: int = 0
    upstream: int = 0
    at_door: bool = True
    heard: tuple[int, str | None] = (0, None)
    sent: int = 0
    report: Report = field(default_factory=Report)
    max_output: int | None = None
    body_bytes: int | None = None
    _place: Callable[[], None] | None = None

    @property
    def open(self) -> bool:
        """Whether the client or the provider is still busy with it."""
        return self.at_door or self.upstream > 0

    def start_attempt(self) -> int:
        """Count a request to the provider and return its number, from 1."""
        self.attempts += 1
        self.upstream += 1
        return self.attempts

    def end_attempt(self) -> None:
        """The request to the provider ended, whatever became of it."""
        self.upstream -= 1
        self._settle()

    def leave_door(self) -> None:
        """The client has its answer, or has gone."""
        self.at_door = False
        self._settle()

    def take_place(self, give_back: Callable[[], None]) -> None:
        """It may go up, and occupies a place until it ends."""
        self._place, self.sent, self.heard = give_back, self.attempts, (0, None)
        self.session.stall.change(busy=1)

    def give_place_back(self) -> None:
        """Let somebody else go up. Harmless without a place."""
        if self._place is not None:
            give_back, self._place = self._place, None
            self.session.stall.change(busy=-1)
            give_back()

    def _settle(self) -> None:
        if not self.open:
            self.give_place_back()
        self.session.wake()


@dataclass
class Session:
    """One session of one cell, behind its own socket. ``sink`` is none for a session that is not recorded."""

    request: OpenRequest
    claim: Claim
    sweep_id: str
    targets: Mapping[str, Target]
    sink: Sink | None
    ledger: Ledger | None = None
    closed: bool = False
    refused: int = 0
    over_budget: Whose | None = None
    stall: Stall = field(default_factory=Stall)
    load: Load = field(default_factory=Load)
    waiters: set[asyncio.Task[None]] = field(default_factory=set)
    callbacks: int = 0
    events: list[Event] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str | None, int]] = field(default_factory=Counter)
    given: Counter[tuple[str | None, int]] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Tell whoever drains the session to look again."""
        self.changed.set()

    def record(self, event: Event) -> None:
        """Write an event down, first of all to the file."""
        if self.sink is not None:
            self.sink.write(event)
        self.events.append(event)
        self.charge(event)

    def charge(self, event: Event) -> None:
        """Count a request to the budgets. What is not recorded is not charged either, but for requests that hang."""
        if self.ledger is not None and self.sink is not None:
            self.ledger.charge(event)

    def end(self) -> None:
        """Take no more calls, and refuse those that wait to be let through."""
        self.closed = True
        for waiter in tuple(self.waiters):
            waiter.cancel()

    def open_calls(self) -> list[Call]:
        """Return the calls that have not ended."""
        return [call for call in self.calls if call.open]

    def unfinished(self) -> list[OpenCall]:
        """Return them as the sweep's manifest lists them."""
        cell, name = self.request.cell_id, self.request.labels.session
        return [OpenCall(cell_id=cell, session=name, call_id=call.id) for call in self.open_calls()]

    async def drain(self, seconds: float) -> None:
        """Wait until no call is open, at most ``seconds``."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self.open_calls():
            self.changed.clear()
            left = deadline - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self.changed.wait(), max(left, 0))
            except TimeoutError:
                return

    async def abandon(self) -> None:
        """End the requests that have not ended, and wait until each was charged."""
        tasks = tuple(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def usage(self, open_calls: int = 0, waiting: bool = False, standing: bool = False) -> SessionUsage:
        """Return all that passed so far."""
        return SessionUsage(
            events=tuple(self.events),
            open_calls=open_calls,
            waiting=waiting,
            refused=self.refused,
            dropped_keys=dict(self.dropped),
            over_budget=self.over_budget,
            sweep_spent=self.ledger.sweep_spent() if self.ledger else None,
            stood=round(self.stall.seconds, 4),
            standing=standing,
        )


class Calls:
    """Calls by id. The tap refuses a request whose call id is not here."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def open(
        self, session: Session, target: Target, requested_model: str, claims: Claims, conversation: Conversation
    ) -> Call:
        """Mint a call id and enter the call."""
        call = Call(secrets.token_hex(12), session, target, requested_model, claims, conversation)
        self._calls[call.id] = call
        session.calls.append(call)
        return call

    def find(self, call_id: str | None) -> Call | None:
        """Return a call of a session that still exists."""
        return self._calls.get(call_id or "")

    def forget(self, session: Session) -> None:
        """Drop a session's calls."""
        for call in session.calls:
            self._calls.pop(call.id, None)
