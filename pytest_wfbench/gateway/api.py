"""What the harness asks of a gateway and what it is told: values that travel over the control socket."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, Self

from pydantic import Field

from pytest_wfbench.evidence.event import Claims, Conversation, Event, EventStatus, Message, Wire

__all__ = [
    "Claims",
    "Conversation",
    "Door",
    "Event",
    "EventStatus",
    "GatewayClient",
    "GatewayLost",
    "GatewayRefused",
    "Labels",
    "Message",
    "OpenRequest",
    "Route",
    "SessionUsage",
    "Terms",
    "Vigil",
    "Whose",
    "Wire",
]

# Whose doing it is that a budget is spent: the cell's own, all cells' together, or a provider's, whose broken-off
# answers are charged at the most they can have cost.
Whose = Literal["cell", "sweep", "provider"]


class Labels(Message):
    """Who speaks on a session's socket: what a cassette matches on. ``run`` counts from 1."""

    task: str
    variation: int = 0
    arm: str
    session: str
    run: int
    agent: str


class Route(Message):
    """Where a requested model goes.

    ``model`` is what the subject names (``replay/demo``, ``anthropic/…``). For a replay ``cassettes`` is the directory
    of its scripts, which say which model and provider answer.
    """

    model: str
    cassettes: Path | None = None


class Terms(Message):
    """On what terms requests may go up: budgets in USD, of the sweep and of each cell, and how many go at once.

    ``prices`` is the price table that budgets go by, none for the bundled one.
    """

    max_cost: float | None = None
    cell_max_cost: float | None = None
    prices: Path | None = None
    max_parallel: int | None = None

    @property
    def has_budget(self) -> bool:
        """Whether costs are counted."""
        return self.max_cost is not None or self.cell_max_cost is not None


class OpenRequest(Message):
    """Opens a socket for one session of one cell. ``seconds`` is the life of its key."""

    cell_id: str
    labels: Labels
    models: tuple[str, ...]
    seconds: float
    provider_tools: tuple[str, ...] = ()


class Door(Message):
    """A session's own socket, and the key that is valid on it alone."""

    cell_id: str
    session: str
    socket: Path
    key: str


class SessionUsage(Message):
    """All that passed a door: the events that ended, and calls that were still open after the drain.

    ``waiting`` says that an upstream request was open when the close was asked for; ``dropped_keys`` counts body keys
    that the filter removed; ``refused`` counts requests that were answered 4xx by the door itself.

    ``over_budget`` says that a request was refused for a budget, and whose doing that was; ``sweep_spent`` that nothing
    of the sweep's budget is left.
    ``stood`` are the seconds in which the session waited to be let through, and ``standing`` says that it did when the
    close was asked for.
    """

    events: tuple[Event, ...] = ()
    open_calls: int = 0
    waiting: bool = False
    refused: int = 0
    dropped_keys: dict[str, int] = Field(default_factory=dict)
    over_budget: Whose | None = None
    sweep_spent: str | None = None
    stood: float = 0.0
    standing: bool = False


class GatewayLost(Exception):
    """The gateway does not answer: it died or was stopped. The message holds the tail of its log."""


class GatewayRefused(Exception):
    """The gateway is well and will not do what it was asked; the message says why, and the remedy."""


class Vigil(Protocol):
    """Knows whether the gateway was lost since. A context manager: it holds a connection."""

    def is_set(self) -> bool:
        """Whether it was lost. Does not wait."""
        ...

    def cause(self) -> str | None:
        """Why, or none while it lives."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class GatewayClient(Protocol):
    """The control side of a running gateway."""

    def open(self, request: OpenRequest) -> Door:
        """Open a door. Raises GatewayLost; GatewayRefused, for example when no cassette fits."""
        ...

    def watch(self) -> Vigil:
        """Keep an eye on the gateway while a session runs. Raises GatewayLost."""
        ...

    def close(self, door: Door) -> SessionUsage:
        """Refuse new calls, wait at most 10 s for the open ones, remove the socket. Raises GatewayLost."""
        ...
