"""The last step of a cell: its workspace is removed before its row is final, which says so where it cannot be."""

from __future__ import annotations

from pytest_wfbench.cell.assemble import REASON, told
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.sandbox.removal import CleanupFailed
from pytest_wfbench.workspace.overlay import Workspace

KIND = "cleanup-failure"


def clear_up(row: Row, workspace: Workspace, redactor: Redactor) -> Row:
    """Remove a cell's workspace and return its row.

    Where that fails a pass becomes unusable: something of the cell outlives it. Whatever was wrong with the cell before
    stays its kind, so that an agent cannot turn a miss into a cell that is tried again.
    """
    try:
        workspace.remove()
    except CleanupFailed as error:
        said = told(str(error), REASON, redactor)
        if row.outcome != "pass":
            return row.model_copy(update={"reason": f"{row.reason}; {KIND}: {said}"[:REASON]})
        return row.model_copy(update={"outcome": "unusable", "kind": KIND, "reason": said, "resolved": None})
    return row
