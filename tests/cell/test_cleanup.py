"""What a cell's row says where its workspace could not be removed."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.cell.assemble import REASON
from pytest_wfbench.cell.cleanup import clear_up
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.sandbox.removal import CleanupFailed

SECRET = "planted-value-0123456789"


class Kept:
    """A workspace that cannot be removed."""

    def __init__(self, said: str) -> None:
        self.said = said

    def remove(self) -> None:
        raise CleanupFailed(self.said)


def cleared(said: str, **fields: Any) -> Row:
    whose = {"cell_id": "c", "task": "t", "task_kind": "implementation", "arm": "a", "run": 1}
    named = {**whose, "subject": "mini:x/y", "agent": "mini", "harness_version": "0"}
    workspace: Any = Kept(said)
    return clear_up(Row.model_validate({**named, **fields}), workspace, Redactor([SECRET]))


@pytest.mark.parametrize("fields", [{"outcome": "pass", "resolved": True}, {"outcome": "miss", "reason": "it failed"}])
def test_one_line(fields: dict[str, Any]) -> None:
    """What the system says of names that an agent chose is one printable line, not too long, without a secret."""
    row = cleared(f"/x: rm: \x1b[2Jone\nrm: {SECRET[:7]}\u200b{SECRET[7:]} " + "y" * 2000, **fields)
    assert row.reason
    assert row.reason.isprintable()
    assert len(row.reason) <= REASON
    assert SECRET not in row.reason


def test_what_it_becomes() -> None:
    """A pass becomes unusable; whatever was wrong before stays, with that added."""
    row = cleared("/x", outcome="pass", resolved=True)
    assert (row.outcome, row.kind, row.reason, row.resolved) == ("unusable", "cleanup-failure", "/x", None)
    row = cleared("/x", outcome="miss", kind="oracle-failed", reason="it failed", resolved=False)
    assert (row.outcome, row.kind, row.resolved) == ("miss", "oracle-failed", False)
    assert row.reason == "it failed; cleanup-failure: /x"
