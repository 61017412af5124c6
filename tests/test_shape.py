"""How an outcome looks to pytest."""

from __future__ import annotations

from typing import Literal

import pytest

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.shape import shape_report


def shaped(outcome: Literal["pass", "miss", "unusable"], reason: str) -> pytest.TestReport:
    report = pytest.TestReport("a::b", ("a", 1, "b"), {}, "passed", None, "call")
    row = Row.model_validate(
        {
            "cell_id": "c",
            "task": "t",
            "task_kind": "implementation",
            "arm": "a",
            "subject": "command:x",
            "agent": "command",
        }
        | {"run": 1, "outcome": outcome, "kind": "session-error", "reason": reason, "harness_version": "0"}
    )
    shape_report(report, row)
    return report


@pytest.mark.parametrize("outcome", ["miss", "unusable"])
def test_nothing_reaches_the_terminal_as_a_command(outcome: Literal["miss", "unusable"]) -> None:
    """What an agent said of its end is shown without control and bidirectional characters, in one line."""
    report = shaped(outcome, "it\x1b[2J \x1b]0;title\x07broke\x00\u202e\nhere")
    text = report.wasxfail if outcome == "miss" else str(report.longrepr)
    assert text.isprintable()
    assert "session-error: it" in text
    assert "here" in text
