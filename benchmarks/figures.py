"""What a benchmark gives: figures with the bound that is asked of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One number. ``bound`` is none where nothing is asked; ``at_least`` says that more is better."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is within its bound."""
        if self.bound is None:
            return True
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def seconds_of(action: Callable[[], object]) -> float:
    """Return the wall clock of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median_ms(actions: Sequence[float]) -> float:
    """Return the median of some seconds, in milliseconds."""
    return statistics.median(actions) * 1000
