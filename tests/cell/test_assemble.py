"""Rows out of what is known of a cell."""

from __future__ import annotations

import errno
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.cell.assemble import cell_faults, kind_of
from pytest_wfbench.cell.sessions import Fault, SessionEnd
from pytest_wfbench.evidence.row import MISS_KINDS, UNUSABLE_KINDS
from pytest_wfbench.gateway.api import GatewayLost, SessionUsage
from pytest_wfbench.sandbox.removal import CleanupFailed
from pytest_wfbench.sandbox.spec import Finished
from pytest_wfbench.scoring.oracle import OracleResult

WELL = Finished(status=0, stdout=b"", stderr=b"", seconds=3.0)
PASSED = OracleResult(passed=True, timed_out=False, reason=None, seconds=1.0)


def faults(
    session: Fault | None = None,
    something: bool = True,
    verify: Finished | None = WELL,
    oracle: OracleResult | None = PASSED,
    trouble: tuple[Exception, ...] = (),
) -> list[str]:
    end = SessionEnd("work", Transcript(), SessionUsage(), WELL, None, session)
    record: Any = SimpleNamespace(
        sessions=(end,),
        trouble=trouble,
        change=SimpleNamespace(something=something, skills_changed=False),
        unreadable=None,
        verify=verify,
        oracle=oracle,
        grade=None,
        review=None,
    )
    found = list(cell_faults(record))
    assert all(fault.kind in (UNUSABLE_KINDS if fault.outcome == "unusable" else MISS_KINDS) for fault in found)
    return [fault.kind for fault in found]


class TestFaults:
    def test_resolved(self) -> None:
        """Session well, verify passed, oracle passed and something changed: nothing is wrong."""
        assert faults() == []

    def test_no_work(self) -> None:
        """A session that went well and changed nothing is no-work-produced; one at fault has that fault alone."""
        assert faults(something=False, verify=None, oracle=None) == ["no-work-produced"]
        late = Fault("miss", "session-timeout", "late")
        assert faults(late, something=False, verify=None, oracle=None) == ["session-timeout"]

    def test_trouble(self) -> None:
        """What the harness or its machine could not do makes a cell unusable, whatever else was seen of it."""
        full = OSError(errno.ENOSPC, "No space left on device", "/x")
        assert faults(something=False, verify=None, oracle=None, trouble=(full,)) == ["infra-error", "no-work-produced"]
        assert faults(trouble=(CleanupFailed("x"),)) == ["cleanup-failure"]
        spent = Fault("miss", "limit-disk", "spent")
        assert faults(spent, trouble=(full,)) == ["limit-disk", "infra-error"]

    @pytest.mark.parametrize(
        ("verify", "kind"),
        [
            (replace(WELL, status=1), "verify-failed"),
            (replace(WELL, status=None, timed_out=True), "verify-timeout"),
            (replace(WELL, leftovers=True), "verify-timeout"),
            (replace(WELL, limit="memory"), "verify-failed"),
            (replace(WELL, status=None, started=False), "infra-error"),
        ],
    )
    def test_verify(self, verify: Finished, kind: str) -> None:
        """What verify did wrong is the candidate's doing, unless its sandbox did not start."""
        assert faults(verify=verify) == [kind]

    def test_oracle(self) -> None:
        """An oracle that failed or ran too long is a miss."""
        assert faults(oracle=replace(PASSED, passed=False, reason="exited 1")) == ["oracle-failed"]
        assert faults(oracle=replace(PASSED, passed=False, timed_out=True)) == ["oracle-timeout"]

    def test_order(self) -> None:
        """Where several apply they come in the order session, verify, oracle."""
        late = Fault("miss", "session-timeout", "late")
        failed = replace(PASSED, passed=False)
        assert faults(late, verify=replace(WELL, status=1), oracle=failed) == [
            "session-timeout",
            "verify-failed",
            "oracle-failed",
        ]


class TestKinds:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (GatewayLost("gone"), "gateway-lost"),
            (CleanupFailed("left"), "cleanup-failure"),
            (RuntimeError("odd"), "infra-error"),
            (None, "infra-error"),
        ],
    )
    def test_of_exceptions(self, error: Exception | None, kind: str) -> None:
        """An exception that ends a cell gives one of the row's kinds."""
        assert kind_of(error) == kind
