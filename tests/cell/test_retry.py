"""Which questions are asked again."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.cell.retry import PAUSE, attempts, is_worth_a_retry
from pytest_wfbench.evidence.row import Row, Usage

LOST: dict[str, Any] = {
    "task_kind": "question", "outcome": "unusable", "kind": "provider-error", "num_turns": 0, "tool_calls": {},
    "usage": Usage(output=0), "requests": 2, "failed_requests": 2,
}  # fmt: skip


def row(number: int = 1, **fields: Any) -> Row:
    named = {
        "cell_id": "c",
        "task": "t",
        "arm": "a",
        "subject": "mini:x/y",
        "agent": "mini",
        "run": 1,
        "harness_version": "0",
    }
    return Row(**named, attempt=number, **(LOST | fields))


def test_a_provider_that_failed_before_any_output() -> None:
    """Nothing was said, nothing was done: the question can be asked again."""
    assert is_worth_a_retry(row())


@pytest.mark.parametrize(
    "fields",
    [
        {"task_kind": "implementation"},
        {"kind": "no-output"},
        {"kind": "judge-error"},
        {"kind": "session-error"},
        {"outcome": "miss", "kind": "check-failed"},
        {"outcome": "pass", "kind": None},
        {"num_turns": 1},
        {"usage": Usage(output=3)},
        {"usage": Usage(output=None)},
        {"tool_calls": {"bash": 1}},
    ],
)
def test_nothing_else_is(fields: dict[str, Any]) -> None:
    """After any output, or for any other cause, the first attempt stands: a second would select by outcome."""
    assert not is_worth_a_retry(row(**fields))


@pytest.mark.parametrize(
    ("retries", "lost", "expected"), [(0, 9, [1]), (1, 9, [1, 2]), (2, 9, [1, 2, 3]), (3, 1, [1, 2]), (5, 0, [1])]
)
def test_as_often_as_asked(retries: int, lost: int, expected: list[int]) -> None:
    """Every attempt is given, in order, up to the first that is not lost or the last that is allowed."""
    slept: list[float] = []

    def once(number: int) -> Row:
        return row(number) if number <= lost else row(number, outcome="pass", kind=None)

    assert [one.attempt for one in attempts(once, retries, slept.append)] == expected
    assert slept == [PAUSE] * (len(expected) - 1)


def test_the_first_is_kept_where_the_second_breaks() -> None:
    """An attempt is given before the next one begins, so that trouble in that one loses nothing."""

    def once(number: int) -> Row:
        if number == 2:
            raise OSError("no space")
        return row(number)

    given = attempts(once, 1, lambda _: None)
    assert next(given).attempt == 1
    with pytest.raises(OSError, match="no space"):
        next(given)
