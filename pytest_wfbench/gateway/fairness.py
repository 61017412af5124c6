"""A line in which nobody is served twice while somebody else waits for the first time."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass
class FairQueue(Generic[Item]):
    """Takes turns over keys: each that waits is served once a round, and first come, first served within a key."""

    _waiting: dict[str, deque[Item]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, key: str, item: Item) -> None:
        """Stand in line: behind one's own, and with none of them there at the end of the round."""
        self._waiting.setdefault(key, deque()).append(item)

    def take(self) -> Item:
        """Return whose turn it is; the key's next one waits for the next round. Raises StopIteration where empty."""
        key = next(iter(self._waiting))
        own = self._waiting.pop(key)
        item = own.popleft()
        if own:
            self._waiting[key] = own
        return item

    def drop(self, key: str, item: Item) -> None:
        """Leave the line. Harmless for who is not in it."""
        own = self._waiting.get(key, deque())
        if item in own:
            own.remove(item)
            if not own:
                del self._waiting[key]


class Turnstile:
    """Lets so many through at a time, fairly over keys; with no number everybody."""

    def __init__(self, places: int | None = None) -> None:
        self._free = places
        self._line: FairQueue[asyncio.Future[None]] = FairQueue()

    async def enter(self, key: str) -> None:
        """Wait for a place; ``leave`` gives it back. Who is cancelled has none."""
        if self._free is None:
            return
        if self._free and not self._line:
            self._free -= 1
            return
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.put(key, ticket)
        try:
            await ticket
        except asyncio.CancelledError:
            self._line.drop(key, ticket)
            if ticket.done() and not ticket.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place back, to whose turn it is."""
        if self._free is None:
            return
        self._free += 1
        while self._free and self._line:
            ticket = self._line.take()
            if not ticket.done():
                self._free -= 1
                ticket.set_result(None)
