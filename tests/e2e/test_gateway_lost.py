"""A gateway that dies under a sweep."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from pytest_wfbench.evidence.store import read_rows
from tests.e2e.conftest import started
from tests.suite import living, processes_of, runs, until

pytestmark = pytest.mark.slow


class TestGatewayLost:
    def test_killed(self, tmp_path: Path) -> None:
        """Cells after its death are unusable, gateway-lost; the outage stop ends the sweep, exit 1; nothing is left."""
        rows = tmp_path / "latest" / "results.jsonl"
        with started(tmp_path, "--wfbench-outage-limit=2") as process:
            until(lambda: rows.exists() and rows.read_text().count("\n") >= 1, 120, "a row")
            everything = processes_of(process)
            (gateway,) = [one for one in psutil.Process(process.pid).children() if runs(one, "gateway.server")]
            gateway.kill()
            assert process.wait(90) == 1
            until(lambda: not living(everything), 5, f"the end of {everything}")
        outcomes = [(row.outcome, row.kind) for row in read_rows((tmp_path / "latest").resolve()).rows]
        graded = outcomes.count(("pass", None))
        assert graded >= 1
        lost = outcomes[graded:]
        assert {outcome for outcome, _ in lost} == {"unusable"}
        assert len(lost) == 2
        assert lost[-1] == ("unusable", "gateway-lost")
