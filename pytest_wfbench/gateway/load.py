"""How much of a session's requests the gateway holds: whoever sends more than any agent is refused, and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_wfbench.gateway.http import MAX_BODY, TooLarge
from pytest_wfbench.values import values_in

# More than the longest conversation has.
MOST_VALUES = 1_000_000


@dataclass
class Load:
    """The bytes of a session's bodies, from the first one read until the request is answered."""

    most: int = MAX_BODY
    held: int = 0

    @contextmanager
    def carry(self) -> Iterator[Callable[[int], None]]:
        """Give what is told of each further byte of one request. It raises TooLarge where that is more than goes."""
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            taken += size
            self.held += size
            if self.held > self.most:
                raise TooLarge(f"the session's requests have more than {self.most} bytes together")

        try:
            yield take
        finally:
            self.held -= taken


def check_values(body: bytes) -> None:
    """See that a JSON body, before it is read, does not hold more values than any client sends. Raises TooLarge."""
    if values_in(body, MOST_VALUES) > MOST_VALUES:
        raise TooLarge(f"the body holds more than {MOST_VALUES} values")
