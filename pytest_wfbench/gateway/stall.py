"""How long a session stood still at the gateway: the harness's doing, and none of the agent's time."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class Stall:
    """Counts the seconds in which calls of a session wait to be let through, and none of it is under way."""

    waiting: int = 0
    busy: int = 0
    _whole: float = 0.0
    _since: float | None = None

    def change(self, waiting: int = 0, busy: int = 0) -> None:
        """Some more calls wait or are under way, or fewer."""
        self.waiting += waiting
        self.busy += busy
        if self._since is not None:
            self._whole += time.monotonic() - self._since
        self._since = time.monotonic() if self.still else None

    @property
    def still(self) -> bool:
        """Whether the session stands still."""
        return self.waiting > 0 and self.busy == 0

    @property
    def seconds(self) -> float:
        """For how long it did so far."""
        return self._whole + (time.monotonic() - self._since if self._since is not None else 0.0)
