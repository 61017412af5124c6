"""Outcomes and exit status of a sweep, as pytest shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite import Suite

pytestmark = pytest.mark.slow


class TestOutcomes:
    def test_misses_are_soft(self, suite: Suite) -> None:
        """A miss is xfailed with its kind and reason, and the exit status stays 0, with workers too."""
        result = suite.run("-rx", "-n", "2", agent="half.sh")
        result.assert_outcomes(xfailed=2, skipped=1)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["XFAIL cases/tiny.cases.yaml::finish[[]*] - oracle-failed: the oracle exited 1"])
        result.stdout.fnmatch_lines(["PASS WITH MISSES*0/2 pass: 2 of 2 graded cells missed"])
        row = suite.rows()[0]
        assert (row["outcome"], row["kind"], row["resolved"]) == ("miss", "oracle-failed", False)
        assert (row["authored_tests_passed"], row["oracle_passed"]) == (True, False)

    def test_an_idle_agent_misses(self, suite: Suite) -> None:
        """An agent that ran and changed nothing is no-work-produced, and nothing is verified or judged."""
        result = suite.run("-rx", agent="idle.sh")
        assert result.ret == 0
        result.stdout.fnmatch_lines(["XFAIL *finish* - no-work-produced: the agent changed nothing"])
        assert {(row["kind"], row["authored_tests_passed"], row["oracle_passed"]) for row in suite.rows()} == {
            ("no-work-produced", None, None)
        }

    def test_unusable_is_red(self, suite: Suite) -> None:
        """An unusable cell fails with its kind and one line of cause, exit 1; the other cells keep their outcome."""
        result = suite.run("-rf", agent="either.sh")
        result.assert_outcomes(passed=1, failed=1, skipped=1)
        assert result.ret == 1
        result.stdout.fnmatch_lines(["unusable, session-error: exit status 3", "BROKEN*1 of 3 cells unusable*"])
        result.stdout.no_fnmatch_line("*Traceback*")
        outcomes = {row["task"]: (row["outcome"], row["kind"], row["resolved"]) for row in suite.rows()}
        assert outcomes == {"finish": ("pass", None, True), "other": ("unusable", "session-error", None)}

    def test_a_setup_that_fails(self, suite: Suite) -> None:
        """A task whose setup fails is the harness's fault, said in one line with the end of its output."""
        suite.edit("cases/tiny.cases.yaml", "    tags: [quick]\n", "    setup: echo no compiler >&2; exit 7\n")
        result = suite.run("-k", "finish")
        assert result.ret == 1
        (row,) = suite.rows()
        assert (row["outcome"], row["kind"]) == ("unusable", "infra-error")
        assert "no compiler" in row["reason"]
        assert "\n" not in row["reason"]


class TestExitStatus:
    def test_tolerated(self, suite: Suite) -> None:
        """With --wfbench-max-unusable as many unusable cells are tolerated: exit 0."""
        assert suite.run("--wfbench-max-unusable=1", agent="either.sh").ret == 0
        assert suite.sweep()["exit_status"] == 0

    @pytest.mark.parametrize(("floor", "status"), [("0.5", 0), ("0.51", 1)])
    def test_floor(self, suite: Suite, floor: str, status: int) -> None:
        """Misses turn the run red only below --wfbench-min-pass, a share of the graded cells."""
        suite.put("mixed.sh", '#!/bin/sh\ncase "$(cat)" in *too.*) exit 0;; esac\necho done > a.txt\n')
        result = suite.run(f"--wfbench-min-pass={floor}", agent="mixed.sh")
        assert result.ret == status
        assert ("BELOW FLOOR" in result.stdout.str()) == (status == 1)

    @pytest.mark.parametrize("workers", [(), ("-n", "2")])
    def test_nothing_selected(self, suite: Suite, workers: tuple[str, ...]) -> None:
        """A selection that is empty exits 5 and leaves no results directory."""
        assert suite.run("-k", "nothing_like_it", *workers).ret == 5
        assert suite.sweeps == []

    @pytest.mark.parametrize("workers", [(), ("-n", "2")])
    def test_usage_error(self, suite: Suite, workers: tuple[str, ...]) -> None:
        """A bad option exits 4, and says what to write instead."""
        result = suite.run("--wfbench-runs=none", *workers)
        assert result.ret == 4
        result.stderr.fnmatch_lines(["ERROR: --wfbench-runs: 'none' is not a whole number: give 0, 1, 2, *"])
        assert suite.sweeps == []

    def test_first_failure_stops(self, suite: Suite) -> None:
        """With -x the sweep ends at the first unusable cell, which keeps its row, and a miss does not stop it."""
        suite.put("odd.sh", '#!/bin/sh\ncase "$(cat)" in *too.*) exit 3;; esac\n')
        result = suite.run("-x", "--wfbench-runs=2", agent="odd.sh")
        assert result.ret == 1
        assert [(row["task"], row["outcome"]) for row in suite.rows()] == [
            ("finish", "miss"),
            ("finish", "miss"),
            ("other", "unusable"),
        ]
        assert suite.sweep()["run_status"] == "aborted"

    def test_another_failing_test(self, suite: Suite) -> None:
        """A failing test that is no cell keeps the run red, however well the cells went."""
        suite.put("test_mine.py", "def test_mine(): raise AssertionError\n")
        result = suite.run("test_mine.py", "-k", "mine or finish")
        result.assert_outcomes(passed=1, failed=1)
        assert result.ret == 1


class TestUnused:
    def test_without_case_files(self, pytester: pytest.Pytester) -> None:
        """Where there is no case file the plugin imports nothing heavy and makes no directory."""
        pytester.makepyfile(
            """
            import sys
            def test_light():
                heavy = {"pydantic", "yaml", "litellm", "jinja2", "rich", "httpx", "aiohttp", "psutil", "filelock"}
                assert not heavy & set(sys.modules)
            """
        )
        off = ("-p", "no:syrupy", "-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:anyio")
        result = pytester.runpytest_subprocess(*off)
        result.assert_outcomes(passed=1)
        assert not Path(pytester.path / "results").exists()


class TestIni:
    def test_settings(self, suite: Suite) -> None:
        """Every option has an ini name, which the command line overrides."""
        suite.put(
            "pytest.ini",
            "[pytest]\n"
            "wfbench_subject =\n    command:solve.sh\n    command:idle.sh\n"
            "wfbench_arms = second\n"
            "wfbench_runs = 7\n"
            "wfbench_results = deep/evidence\n"
            "wfbench_include_expensive = true\n",
        )
        result = suite.run("--wfbench-runs=1", agent="")
        result.assert_outcomes(passed=3, xfailed=3)
        assert result.ret == 0
        (directory,) = (suite.path / "deep" / "evidence").glob("wfbench-*")
        rows = (directory / "results.jsonl").read_text()
        assert (rows.count('"arm":"second"'), rows.count('"run":1,')) == (6, 6)
