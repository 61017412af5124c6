"""Case files as pytest items: ids, order, selection."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.suite import Suite

pytestmark = pytest.mark.slow


def ids(result: pytest.RunResult) -> list[str]:
    """The node ids that ``--collect-only -q`` lists."""
    return [line.removeprefix("cases/tiny.cases.yaml::") for line in result.outlines if "::" in line]


class TestItems:
    def test_ids_and_order(self, suite: Suite) -> None:
        """Ids read task[arm-subject-run], a variation stands behind the task, and whole pairs come first."""
        suite.edit(
            "cases/tiny.cases.yaml", "    reference:", "    variations: [Write done into a.txt.]\n    reference:"
        )
        result = suite.run("--collect-only", "-q", "--wfbench-arms=baseline,second", "--wfbench-runs=2", "-k", "finish")
        assert result.ret == 0
        assert ids(result) == [
            f"finish{wording}[{arm}-command:solve.sh-{run}]"
            for wording in ("", "~v1")
            for run in (1, 2)
            for arm in ("baseline", "second")
        ]

    def test_repositories_and_oracles_are_closed(self, suite: Suite) -> None:
        """No test of a task repository or an oracle root is collected, wherever pytest is pointed."""
        suite.put("oracles/test_hidden.py", "def test_hidden(): pass\n")
        suite.put("test_own.py", "def test_own(): pass\n")
        result = suite.run(".", "--collect-only", "-q")
        assert [line for line in result.outlines if "::" in line] == [
            "cases/tiny.cases.yaml::finish[baseline-command:solve.sh-1]",
            "cases/tiny.cases.yaml::other[baseline-command:solve.sh-1]",
            "cases/tiny.cases.yaml::dear[baseline-command:solve.sh-1]",
            "test_own.py::test_own",
        ]

    @pytest.mark.parametrize(
        "option", ["--collect-only", "--fixtures", "--setup-plan", "--setup-only", "--markers", "--help"]
    )
    def test_looking_spends_nothing(self, suite: Suite, option: str) -> None:
        """What only shows cells starts no gateway, calls no agent and leaves no results directory."""
        suite.put(
            "conftest.py",
            "import subprocess\n"
            "start = subprocess.Popen.__init__\n"
            "def spy(self, argv, *rest, **named):\n"
            "    with open('started.txt', 'a') as stream:\n"
            "        print(argv, file=stream)\n"
            "    return start(self, argv, *rest, **named)\n"
            "subprocess.Popen.__init__ = spy\n",
        )
        suite.put("cases/cassettes/demo/any.yaml", "model: m\nprovider: anthropic\nturns: [{text: x, usage: {}}]\n")
        assert suite.run(option, agent="").ret == 0
        started = suite.path / "started.txt"
        assert "gateway" not in (started.read_text() if started.exists() else "")
        assert not (suite.path / "results").exists()


class TestSelection:
    def test_tags(self, suite: Suite) -> None:
        """A tag is a marker, known to --strict-markers."""
        result = suite.run("--collect-only", "-q", "-m", "quick", "--strict-markers")
        assert ids(result) == ["finish[baseline-command:solve.sh-1]"]

    def test_keyword_and_deselect(self, suite: Suite) -> None:
        """-k selects by any part of an id, --deselect leaves one out."""
        left_out = "cases/tiny.cases.yaml::other[second-command:solve.sh-1]"
        result = suite.run(
            "--collect-only", "-q", "--wfbench-arms=baseline,second", "-k", "second", "--deselect", left_out
        )
        assert ids(result) == ["finish[second-command:solve.sh-1]", "dear[second-command:solve.sh-1]"]

    def test_node_id_and_last_failed(self, suite: Suite) -> None:
        """A pasted node id runs that cell alone, and --lf collects what was unusable, with the same options."""
        suite.run(agent="either.sh")
        again = suite.run("--lf", "--collect-only", "-q", agent="either.sh")
        assert ids(again) == ["other[baseline-command:either.sh-1]"]
        pasted = ["cases/tiny.cases.yaml::finish[baseline-command:solve.sh-2]", "--wfbench-runs=2"]
        result = suite.pytester.runpytest_subprocess(*pasted, "--wfbench-subject=command:solve.sh")
        result.assert_outcomes(passed=1)
        assert [(row["task"], row["run"]) for row in suite.rows()] == [("finish", 2)]
        assert [cell["run"] for cell in suite.sweep()["planned"]] == [2]


def test_nothing_dear_is_imported() -> None:
    """What a sweep needs only in places is not imported where cells are collected and run."""
    code = (
        "import sys, pytest_wfbench.reporter, pytest_wfbench.fixtures; "
        "dear = {'numpy', 'scipy', 'litellm', 'httpx', 'aiohttp', 'opentelemetry'}; print(dear & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
