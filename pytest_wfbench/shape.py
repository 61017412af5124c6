"""How an outcome looks to pytest: a miss is soft, an unusable cell is red."""

from __future__ import annotations

from typing import Literal

import pytest

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.report.escape import one_line

TestReportOutcome = Literal["passed", "failed", "skipped"]
REASON = 400
OUTCOMES: dict[str, TestReportOutcome] = {"pass": "passed", "miss": "skipped", "unusable": "failed"}


def shape_report(report: pytest.TestReport, row: Row) -> None:
    """Give a report the outcome of its row; a miss is shown as xfailed with the reason."""
    report.outcome = OUTCOMES[row.outcome]
    why = one_line(f"{row.kind}: {row.reason}" if row.reason else str(row.kind), REASON)
    if row.outcome == "miss":
        report.wasxfail = why
        report.longrepr = None
    elif row.outcome == "unusable":
        report.longrepr = f"unusable, {why}"
