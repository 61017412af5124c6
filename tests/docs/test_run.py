"""What the pages show is what happens to a reader who types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.agents.base import AgentUnavailable
from pytest_wfbench.agents.registry import get_agent
from tests.e2e.conftest import Ended, once  # noqa: F401  (a fixture that the next one needs)
from tests.e2e.test_demo import demo  # noqa: F401  (the one demo of all tests)
from tests.e2e.test_reviews import reviews, trading  # noqa: F401
from tests.upstream import Model

from .conftest import ANSWERED
from .markdown import ROOT, first_column, marked
from .session import Shell, settled

README = ROOT / "README.md"
DOCS = ROOT / "docs"
GREET = "pytest . -q --wfbench-arms=baseline"
KEY = "sk-ant-key-of-the-documentation-tests"

pytestmark = pytest.mark.slow


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A reader's shell in an empty directory."""
    return Shell(tmp_path)


@pytest.fixture
def greet(shell: Shell) -> Shell:
    """A shell in a directory that holds what the README has made, and no results."""
    for block in marked(README, "run", "greet"):
        if block.kind == "sh":
            assert shell.run(f"set -e\n{block.text}").status == 0
    return shell


def rows(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "results/latest/results.jsonl").read_text().splitlines()]


class TestReadme:
    def test_task_of_your_own(self, shell: Shell) -> None:
        """The ten lines read, their oracle is proven, a program solves the task, and all prints what is shown."""
        for ran, shown in shell.play(marked(README, "run", "greet")):
            assert (ran.status, settled(ran.output)) == (0, settled(shown)), ran
        assert len((shell.directory / "greet.cases.yaml").read_text().splitlines()) == 10
        [row] = rows(shell.directory)
        assert (row["outcome"], row["resolved"], row["oracle_passed"]) == ("pass", True, True)

    def test_untouched_misses(self, greet: Shell) -> None:
        """The check that is shown can fail: a program that does half of it is a miss, and no failure."""
        (greet.directory / "half.sh").write_text("#!/bin/sh\necho 'print(\"Hello, Ada!\")' >greet.py\n")
        ran = greet.run(f"{GREET} --wfbench-subject=command:half.sh")
        assert (ran.status, rows(greet.directory)[0]["kind"]) == (0, "oracle-failed"), ran.output

    def test_sabotage(self, greet: Shell) -> None:
        """The oracle that is shown stands every sabotage."""
        ran = greet.run("wfbench check . --sabotage")
        assert (ran.status, "FAULT" in ran.output) == (0, False), ran.output

    def test_keyed(self, greet: Shell, provider: Model) -> None:
        """The keyed command runs against a provider: the key arrives there and is found nowhere else."""
        [block] = marked(README, "run", "keyed")
        export, command = block.text.splitlines()
        assert export == "export ANTHROPIC_API_KEY=…"
        shell = Shell(greet.directory, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": provider.url})
        ran = shell.run(command.replace("claude-code:", f"{_agent()}:"))
        made = rows(shell.directory)
        assert ran.status == 0, ran.output
        assert [row["outcome"] for row in made] == ["pass"] * 3, [row["reason"] for row in made]
        assert {model for row in made for model in row["models_answered"]} == {ANSWERED}
        billed = [entry for entry in provider.ledger if entry.who != "preflight"]
        assert sum(row["requests"] for row in made) == len(billed)
        for name in ("ordinary_input", "cache_read_input", "cache_write_input", "output"):
            assert sum(row["usage"][name] for row in made) == sum(getattr(entry.usage, name) for entry in billed)
        assert all(row["cost_usd"] > 0 for row in made)
        assert {entry.headers.get("x-api-key") for entry in provider.ledger} == {KEY}
        assert {entry.model for entry in provider.ledger} == {"claude-sonnet-4-5"}
        assert KEY not in ran.output + _everything_below(shell.directory)

    def test_what_leaves(self, greet: Shell, provider: Model) -> None:
        """The provider is sent the prompt, and neither the oracle nor the reference."""
        shell = Shell(greet.directory, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": provider.url})
        ran = shell.run(f"{GREET} --wfbench-subject=mini:anthropic/claude-sonnet-4-5")
        sent = json.dumps([entry.body for entry in provider.ledger])
        assert ran.status == 0, ran.output
        assert "without a NAME" in sent
        assert "subprocess" not in sent
        assert "+++ b/greet.py" not in sent

    def test_host_is_refused_in_ci(self, greet: Shell) -> None:
        """No cell runs without a sandbox where CI is set."""
        ran = greet.run(f"CI=true {GREET} --wfbench-subject=command:solve.sh --wfbench-sandbox=host")
        assert (ran.status, "--wfbench-sandbox" in ran.output) == (4, True)


def _agent() -> str:
    """Return Claude Code where it is installed, else an agent that is always here."""
    try:
        get_agent("claude-code").find("anthropic/x", ROOT)
    except AgentUnavailable:
        return "mini"
    return "claude-code"


def _everything_below(directory: Path) -> str:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink()]
    return "\n".join(path.read_text(errors="replace") for path in files)


class TestOtherPages:
    def test_skilled_program(self, greet: Shell) -> None:
        """The program of docs/agents.md reports the use of the skill, in an arm that wants it."""
        for ran, _ in greet.play(marked(DOCS / "agents.md", "run", "skill")):
            assert ran.status == 0, ran.output
        [row] = rows(greet.directory)
        assert (row["outcome"], row["skills_used"]) == ("pass", ["work"])

    def test_added_arm(self, greet: Shell) -> None:
        """The arm that docs/arms.md adds hands its notes over, and solves the task of the README."""
        for ran, _ in greet.play(marked(DOCS / "arms.md", "run", "arm")):
            assert ran.status == 0, ran.output
        [row] = rows(greet.directory)
        assert (row["arm"], row["outcome"], row["oracle_passed"]) == ("noted", "pass", True), row["reason"]
        assert row["churn"]["files"] == 1

    def test_added_agent(self, greet: Shell) -> None:
        """The agent that docs/agents.md adds from outside, in under 80 lines, solves the task of the README."""
        # What pip installs goes beside the case, not into the environment of these tests.
        pip = {"PIP_TARGET": "added", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
        shell = Shell(greet.directory, {**pip, "PYTHONPATH": str(greet.directory / "added")})
        for ran, _ in shell.play(marked(DOCS / "agents.md", "run", "adding")):
            assert ran.status == 0, ran.output
        [row] = rows(greet.directory)
        assert (row["outcome"], row["agent_version"], row["tool_calls"]) == ("pass", "oneshot 1.0", {"bash": 1})
        assert (row["usage"]["output"], row["agent"]) == (40, "oneshot")
        assert len((greet.directory / "oneshot/oneshot.py").read_text().splitlines()) < 80

    def test_faults(self, greet: Shell) -> None:
        """The faults of docs/tasks.md are printed as they are shown."""
        played = list(greet.play(marked(DOCS / "tasks.md", "run", "faults")))
        assert [ran.status for ran, _ in played] == [0, 4]
        for ran, shown in played:
            assert settled(ran.output) == settled(shown)

    def test_calibration(self) -> None:
        """The calibration of docs/smoke.md prints what is shown."""
        [(ran, shown)] = Shell(ROOT).play(marked(DOCS / "smoke.md", "run", "calibrate"))
        assert (ran.status, settled(ran.output)) == (0, settled(shown)), ran.output

    def test_generator(self) -> None:
        """The generator that CONTRIBUTING.md names runs, and leaves the pages as they are."""
        [block] = marked(ROOT / "CONTRIBUTING.md", "run", "generate")
        before = {page: page.read_text() for page in DOCS.glob("*.md")}
        try:
            assert Shell(ROOT).run(block.text).status == 0
            assert {page: page.read_text() for page in before} == before
        finally:
            for page, text in before.items():
                if page.read_text() != text:
                    page.write_text(text)


class TestExitStatus:
    def test_table(self) -> None:
        """The README's table has the statuses that pytest gives these meanings, each once."""
        code = pytest.ExitCode
        meant = (
            code.OK,
            code.TESTS_FAILED,
            code.INTERRUPTED,
            code.INTERNAL_ERROR,
            code.USAGE_ERROR,
            code.NO_TESTS_COLLECTED,
        )
        assert first_column(README, "Exit status") == [str(int(status)) for status in meant]

    @pytest.mark.parametrize(
        ("status", "script", "options"),
        [
            (0, "true", ""),
            (1, "exit 3", ""),
            (1, "true", "--wfbench-min-pass=0.5"),
            (4, "true", "--wfbench-runs=x"),
            (4, "true", "--wfbench-subject=mini:anthropic/claude-sonnet-4-5"),
            (5, "true", "-k nothing"),
        ],
        ids=["miss", "unusable", "below-floor", "usage-error", "missing-key", "nothing-selected"],
    )
    def test_status(self, greet: Shell, status: int, script: str, options: str) -> None:
        """A sweep exits as the table says."""
        (greet.directory / "agent.sh").write_text(f"#!/bin/sh\n{script}\n")
        ran = greet.run(f"{GREET} --wfbench-subject=command:agent.sh {options}")
        assert ran.status == status, ran.output

    def test_interrupted(self, greet: Shell) -> None:
        """Ctrl-C exits 2, and the partial report is written."""
        (greet.directory / "agent.sh").write_text("#!/bin/sh\nsleep 60\n")
        argv = [*GREET.replace("pytest", f"{sys.executable} -m pytest").split(), "--wfbench-subject=command:agent.sh"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        running = subprocess.Popen(argv, cwd=greet.directory, env=kept, stdout=subprocess.DEVNULL)
        results = greet.directory / "results/latest"
        _wait(lambda: (results / "sweep.json").exists())
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 2
        assert "INCOMPLETE" in (results / "report.md").read_text()

    @pytest.mark.parametrize(
        ("status", "verb"),
        [
            (1, "check ."),
            (4, "check nowhere"),
            (4, "gate nowhere"),
            (5, "gate results/latest"),
            (0, "report results/latest"),
        ],
        ids=["unproven", "no-path", "no-directory", "no-candidate", "report"],
    )
    def test_verbs(self, greet: Shell, status: int, verb: str) -> None:
        """A verb exits as the README says."""
        if "latest" in verb:
            assert greet.run(f"{GREET} --wfbench-subject=command:solve.sh").status == 0
        (greet.directory / "oracles/greet.patch").write_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
        ran = greet.run(f"wfbench {verb}")
        assert ran.status == status, ran.output


def _wait(found: Any, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_demo(demo: Ended) -> None:  # noqa: F811
    """The demo, run afresh, prints what the README shows; times and names of the sweep aside."""
    assert demo.status == 0, demo.output
    for name, text in (
        ("terminal", demo.output),
        ("comment", (demo.results / "comment.md").read_text()),
        ("report", (demo.results / "report.md").read_text()),
    ):
        [block] = marked(README, "demo", name)
        shown, printed = settled(block.text), settled(text)
        assert shown == _part(printed, shown[0], len(shown)), name


@pytest.mark.parametrize("name", ["reviews", "trading"])
def test_reviews(name: str, request: pytest.FixtureRequest) -> None:
    """The demo's reviews, run afresh, print what the README shows."""
    ended: Ended = request.getfixturevalue(name)
    [block] = marked(README, "demo", name)
    shown = settled(block.text)
    assert shown == _part(settled(ended.output), shown[0], len(shown)), ended.output


def _part(lines: list[str], first: str, length: int) -> list[str]:
    start = lines.index(first) if first in lines else 0
    return lines[start : start + length]
