"""Questions whose provider failed before any output are asked again; every attempt has a row, and was paid for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from pytest_wfbench.evidence.row import Row

PAUSE = 1.0


def is_worth_a_retry(row: Row) -> bool:
    """Whether a question was lost to its provider, or to the way there, before the agent had any output."""
    silent = row.num_turns == 0 and row.usage.output == 0 and not row.tool_calls
    return row.task_kind == "question" and row.outcome == "unusable" and row.kind == "provider-error" and silent


def attempts(run: Callable[[int], Row], retries: int, sleep: Callable[[float], None] = time.sleep) -> Iterator[Row]:
    """Yield the row of each attempt as it ends; ``run`` is given its number, from 1."""
    number = 1
    yield (row := run(number))
    while number <= retries and is_worth_a_retry(row):
        sleep(PAUSE)
        number += 1
        yield (row := run(number))
