"""Sweeps without a boundary: they work, and never pass for more than they are."""

from __future__ import annotations

import pytest

from tests.suite import Suite


@pytest.mark.slow
class TestHost:
    def test_solved(self, suite: Suite) -> None:
        """A solved task passes; its row, the terminal and every report say that there was no sandbox."""
        ended = suite.run("--wfbench-sandbox=host", "-k", "finish and baseline")
        ended.assert_outcomes(passed=1, deselected=2)
        (row,) = suite.rows()
        assert (row["outcome"], row["sandbox"], row["churn"]["files"]) == ("pass", "host", 1)
        assert row["workspace_kind"] in ("reflink", "copy")
        told = "There was no sandbox: agents could see and change the host."
        assert told in ended.stdout.str()
        assert told in (suite.results / "report.md").read_text()
        assert told in (suite.results / "comment.md").read_text()
        assert suite.sweep()["sandbox"] == "host"

    def test_idle(self, suite: Suite) -> None:
        """An agent that changes nothing misses."""
        suite.run("--wfbench-sandbox=host", "-k", "finish and baseline", agent="idle.sh").assert_outcomes(
            xfailed=1, deselected=2
        )
        (row,) = suite.rows()
        assert (row["outcome"], row["kind"]) == ("miss", "no-work-produced")

    def test_setup(self, suite: Suite) -> None:
        """What ``setup`` does is there, and is no change of the agent's."""
        suite.edit(
            "cases/tiny.cases.yaml", "  verify: grep", "  setup: echo s > of-setup\n  verify: test -e of-setup && grep"
        )
        suite.run("--wfbench-sandbox=host", "-k", "finish and baseline").assert_outcomes(passed=1, deselected=2)
        assert suite.rows()[0]["churn"]["files"] == 1


class TestContinuousIntegration:
    def test_refused(self, suite: Suite) -> None:
        """Where CI is set the host is refused, before anything is run."""
        ended = suite.run("--wfbench-sandbox=host", CI="true")
        assert ended.ret == 4
        ended.stderr.fnmatch_lines(["--wfbench-sandbox: host is no boundary, so it is refused where CI is set.*"])
        assert suite.sweeps == []
