"""What a sweep leaves in its results directory, and when it stops of itself."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import read_rows, read_sweep
from tests.suite import Suite

pytestmark = pytest.mark.slow

# What a row of a command agent without skills, without a dependency and over a plain directory cannot have.
NONE = {
    "kind", "reason", "review", "answer", "judge", "usage_source", "claimed_usage", "models_answered", "subagent_share",
    "skill_digest", "overlay_digest", "dependency_digest", "plugin", "base_commit", "effort", "reused_from",
}  # fmt: skip


class TestEvidence:
    def test_whole_directory(self, suite: Suite) -> None:
        """A clean sweep exits 0 and leaves whole rows, a manifest, artifacts whose digests hold, and the reports."""
        result = suite.run("-rs", "--junitxml=out/junit.xml", "--wfbench-results=deep/evidence")
        result.assert_outcomes(passed=2, skipped=1)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["PASS  2/2 pass", "SKIPPED * expensive: run it with --wfbench-include-expensive"])
        parent = suite.path / "deep" / "evidence"
        directory = (parent / "latest").resolve()
        assert (parent / "latest").is_symlink()
        assert directory.name.startswith("wfbench-")
        self._rows(directory)
        self._manifest(read_sweep(directory))
        assert {"report.md", "comment.md"} <= {path.name for path in directory.iterdir()}
        assert not (directory / "promotion.json").exists()
        cases = list(ElementTree.parse(suite.path / "out" / "junit.xml").iter("testcase"))
        assert [case.get("name") for case in cases if case.find("skipped") is None] == [
            "finish[baseline-command:solve.sh-1]",
            "other[baseline-command:solve.sh-1]",
        ]

    def _rows(self, directory: Path) -> None:
        rows = read_rows(directory).rows
        assert [(row.task, row.outcome, row.resolved) for row in rows] == [
            ("finish", "pass", True),
            ("other", "pass", True),
        ]
        for row in rows:
            assert {name for name, value in row if value is None or value == ()} <= NONE | {"class_"} | {
                "skills_expected",
                "skills_used",
                "agent_options",
            }
            assert (row.churn.files, row.churn.insertions, row.churn.deletions) == (1, 1, 1) if row.churn else False
            assert row.start_commit == row.snapshot_commit == row.head_commit
            assert (row.cost_usd, row.requests, row.usage.output, row.usage_incomplete) == (0, 0, 0, False)
            self._artifacts(directory / "cells" / row.cell_id / "1", row)
            assert 0 < (row.timings.session or 0) < 30
            assert None not in (row.timings.workspace, row.timings.verify, row.timings.oracle, row.timings.overhead)

    def _artifacts(self, directory: Path, row: Row) -> None:
        assert digest_bytes((directory / "transcript.jsonl").read_bytes()) == row.transcript_digest
        patch = (directory / "patch.diff").read_bytes()
        assert digest_bytes(patch) == row.patch_digest
        assert b"-open\n+done\n" in patch
        assert (directory / "stderr.txt").exists()

    def _manifest(self, sweep: Sweep) -> None:
        assert (sweep.run_status, sweep.exit_status, sweep.stop) == ("complete", 0, None)
        assert [cell.task for cell in sweep.planned] == ["finish", "other"]
        (skipped,) = sweep.skipped
        assert (skipped.kind, skipped.task) == ("expensive", "dear")
        assert "--wfbench-include-expensive" in skipped.reason
        assert [task.id for task in sweep.tasks] == ["finish", "other", "dear"]
        assert all(task.task_digest and task.oracle_digest and task.snapshot_commit for task in sweep.tasks)
        assert (sweep.started_at, sweep.ended_at) != (None, None)
        assert {"tasks", "snapshots", "arms", "subjects", "agents", "harness"} <= sweep.lock.keys()

    def test_next_sweep(self, suite: Suite) -> None:
        """Each sweep has a directory of its own, `latest` names the newest, and the same suite has the same lock."""
        suite.run("-k", "finish")
        first = suite.sweep()
        suite.run("-k", "finish", "--wfbench-include-expensive", "-n", "2")
        assert len(suite.sweeps) == 2
        second = suite.sweep()
        assert second["sweep_id"] != first["sweep_id"]
        assert second["lock"] == first["lock"]
        assert [row["cell_id"] for row in suite.rows()] == [first["planned"][0]["cell_id"]]

    def test_junit(self, suite: Suite) -> None:
        """In JUnit XML an unusable cell is a failure with its cause, a miss is skipped with its reason."""
        suite.put("odd.sh", '#!/bin/sh\ncase "$(cat)" in *too.*) exit 3;; esac\n')
        suite.run("--junitxml=junit.xml", "-n", "2", agent="odd.sh")
        cases = {c.get("name", ""): c for c in ElementTree.parse(suite.path / "junit.xml").iter("testcase")}
        failure = cases["other[baseline-command:odd.sh-1]"].find("failure")
        skipped = cases["finish[baseline-command:odd.sh-1]"].find("skipped")
        assert failure is not None
        assert skipped is not None
        assert "unusable, session-error: exit status 3" in (failure.text or "") + (failure.get("message") or "")
        assert "no-work-produced" in (skipped.get("message") or "")


class TestFailures:
    def test_where_standard_error_is(self, suite: Suite) -> None:
        """An unusable cell names the file with what its sessions wrote to standard error."""
        result = suite.run("-k", "finish and baseline", agent="broken.sh")
        [line] = [text for text in result.outlines if text.startswith("what its sessions wrote to standard error: ")]
        assert (suite.path / line.partition(": ")[2]).read_text() == "== work\nit broke\n\n"

    @pytest.mark.parametrize("workers", [(), ("-n", "2")])
    def test_stop_at_the_first(self, suite: Suite, workers: tuple[str, ...]) -> None:
        """With ``-x`` the exit status is the verdict's, with workers as without."""
        result = suite.run("-x", "--wfbench-runs=3", *workers, agent="broken.sh")
        assert result.ret == 1
        assert suite.sweep()["exit_status"] == 1
        result.stdout.fnmatch_lines(["BROKEN *"])


class TestOutage:
    def test_stops_at_the_limit(self, suite: Suite) -> None:
        """After N consecutive unusable cells no new one starts: what is done is kept, the rest is named, exit 1."""
        result = suite.run("--wfbench-outage-limit=3", "--wfbench-runs=3", "-rs", agent="broken.sh")
        result.assert_outcomes(failed=3, skipped=6)
        assert result.ret == 1
        cause = "3 consecutive unusable cells, the last one: session-error: exit status 3: it broke"
        result.stdout.fnmatch_lines([f"BROKEN*{cause}", f"SKIPPED * outage-stop: {cause}"])
        assert len(suite.rows()) == 3
        sweep = suite.sweep()
        assert (sweep["run_status"], sweep["stop"]["kind"]) == ("aborted", "outage")
        kinds = [entry["kind"] for entry in sweep["skipped"]]
        assert (kinds.count("outage-stop"), kinds.count("expensive")) == (3, 3)

    def test_with_workers(self, suite: Suite) -> None:
        """With workers at most workers − 1 cells more finish."""
        result = suite.run("--wfbench-outage-limit=3", "--wfbench-runs=4", "-n", "2", agent="broken.sh")
        assert result.ret == 1
        assert 3 <= len(suite.rows()) <= 4

    def test_graded_cells_reset_it(self, suite: Suite) -> None:
        """Unusable cells with graded ones between them never stop the sweep."""
        second = "  second:\n    sessions: [{name: work"
        suite.edit("cases/arms.yaml", second, second + ', prompt: "{task} Do it too."')
        options = ("--wfbench-outage-limit=2", "--wfbench-runs=3", "--wfbench-arms=baseline,second", "-k", "finish")
        result = suite.run(*options, agent="either.sh")
        result.assert_outcomes(passed=3, failed=3)
        assert suite.sweep()["stop"] is None
