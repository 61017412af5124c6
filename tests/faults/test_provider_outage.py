"""A provider that is down under a model's agent: the sweep stops by itself, and not too soon."""

from __future__ import annotations

import pytest

from tests.suite import Suite

from .conftest import SUBJECT, script

pytestmark = pytest.mark.slow

DOWN = "error: {status: 429, type: rate_limit_error, message: come back tomorrow}"


def outcomes(suite: Suite) -> list[str]:
    return ["x" if row["kind"] == "provider-error" else row["outcome"] for row in suite.rows()]


class TestOutage:
    def test_five_in_a_row(self, suite: Suite) -> None:
        """Four failures and a graded cell go on; the fifth in a row is the last, and the rest are listed as skipped."""
        script(suite, "down", fault=DOWN)
        script(suite, "up", "run: 5")
        ran = suite.run("-k", "finish", SUBJECT, "--wfbench-arms=baseline", "--wfbench-runs=14", agent="")
        assert outcomes(suite) == [*"xxxx", "pass", *"xxxxx"]
        sweep = suite.sweep()
        assert (ran.ret, sweep["stop"]["kind"]) == (1, "outage")
        assert "come back tomorrow" in sweep["stop"]["cause"]
        assert len([one for one in sweep["skipped"] if one["kind"] == "outage-stop" and one["cell_id"]]) == 4
        assert all(row["usage"]["output"] == 0 for row in suite.rows() if row["kind"] == "provider-error")
