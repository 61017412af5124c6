"""The README's section on CI: each command run as it stands there, and what became of the sweep."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.derive import derive
from tests.e2e.conftest import Ended
from tests.forge.standin import StandIn, serving

from .markdown import ROOT, marked, table
from .session import Shell, settled

README = ROOT / "README.md"
CASES = {
    what: (command.strip("`"), said, int(status)) for what, command, said, status in table(README, "In CI")
}  # fmt: skip
FLUBBED = "pytest cases/smoke -m smoke"
NO_CREDIT = f"{FLUBBED} --wfbench-judge-model=replay/judge-no-credit"
SECONDS = 30

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the shipped cases and nothing else."""
    place = tmp_path_factory.mktemp("clone")
    for name in ("smoke", "ledger", "cassettes"):
        shutil.copytree(ROOT / "cases" / name, place / "cases" / name)
    return place


@pytest.fixture(scope="module")
def ended(clone: Path) -> Callable[[str], Ended]:
    """What became of a command that the table shows; each is run once."""
    done: dict[str, Ended] = {}
    shown = [command for command, _, _ in CASES.values()]

    def run(command: str) -> Ended:
        assert command in shown
        if command not in done:
            ran = Shell(clone).run(command)
            done[command] = Ended(ran.status, ran.output, (clone / "results/latest").resolve())
        return done[command]

    return run


def outcomes(sweep: Ended) -> dict[str, tuple[str, str | None]]:
    return {row.task: (row.outcome, row.kind) for row in sweep.rows}


def judged(sweep: Ended) -> list[str]:
    """The cells that the judge was asked about, once a request, its sign of life aside."""
    return [event.cell_id for event in sweep.events if event.session == "judge" and event.cell_id != "preflight"]


@pytest.mark.parametrize("what", CASES)
def test_table(what: str, ended: Callable[[str], Ended]) -> None:
    """The command says what its row says and exits as it says; so do the evidence and the comment."""
    command, said, status = CASES[what]
    sweep = ended(command)
    verdict = derive(sweep.results).verdict
    rate = f"{verdict.counts.passed}/{verdict.counts.graded} pass"
    assert said in settled(sweep.output), sweep.output
    assert (sweep.status, verdict.exit_status) == (status, status)
    assert said == f"{verdict.word} {rate}: {verdict.cause}"
    headline = (sweep.results / "comment.md").read_text().splitlines()[1]
    assert headline == f"### {verdict.word} {verdict.glyph} Smoke eval — {rate}"


class TestFlubbed:
    @pytest.fixture
    @staticmethod
    def smoke(ended: Callable[[str], Ended]) -> Ended:
        return ended(FLUBBED)

    def test_nine_questions(self, smoke: Ended) -> None:
        """Eight pass, the flubbed one is a miss that the judge gave; the nine take less than half a minute."""
        found = outcomes(smoke)
        assert len(found) == 9
        assert found.pop("last-day-of-january") == ("miss", "rubric-missed")
        assert set(found.values()) == {("pass", None)}
        assert sum((row.timings.session or 0) + (row.timings.judge or 0) for row in smoke.rows) < SECONDS

    def test_rows_say_all(self, smoke: Ended) -> None:
        """Each row has the whole answer, the verdict, who gave it by which prompt, and numbers without gaps."""
        for row in smoke.rows:
            assert row.answer
            assert row.judge is not None
            assert (row.judge.model, row.judge.requested_model) == ("gpt-5-mini-2025-08-07", "replay/judge")
            assert (row.judge.prompt_version, row.judge.votes, row.judge.requests) == ("1", 1, 1)
            assert row.judge.usage is not None
            assert row.judge.usage.output
            assert row.judge.cost_usd
            assert not row.usage_incomplete
            assert row.cost_usd
            assert row.models_answered == ("claude-sonnet-4-5-20250929",)
            assert row.timings.judge is not None
        chart = next(row for row in smoke.rows if row.task == "module-sizes")
        assert chart.tool_calls == {"bash": 1}

    def test_two_turns_in_one_conversation(self, smoke: Ended) -> None:
        """The second step is answered in the conversation of the first, in one session."""
        row = next(row for row in smoke.rows if row.task == "follow-up")
        assert str(row.answer).startswith("Two: a percentage off")
        assert (row.num_turns, row.tool_calls) == (4, {"bash": 2})
        lines = (smoke.results / "cells" / row.cell_id / "1" / "transcript.jsonl").read_text().splitlines()
        assert [json.loads(line)["type"] for line in lines].count("turn") == 1

    def test_judge_calls_are_metered_apart(self, smoke: Ended) -> None:
        """Nine judge calls and the sign of life are in the log under the judge's name, and in no row's numbers."""
        calls = [event for event in smoke.events if event.session == "judge"]
        assert (len(judged(smoke)), len(calls)) == (9, 10)
        assert sum(row.requests or 0 for row in smoke.rows) == len(smoke.events) - len(calls)


class TestVerdicts:
    def test_misses(self, ended: Callable[[str], Ended]) -> None:
        """Two and three misses are the judge's, and nothing is unusable."""
        strict = ended(f"{FLUBBED} --wfbench-judge-model=replay/judge-strict")
        stricter = ended(f"{FLUBBED} --wfbench-judge-model=replay/judge-stricter --wfbench-min-pass=0.7")
        two = {"exit-status", "where-rounding-happens"}
        for sweep, missed in ((strict, two), (stricter, two | {"zero-rated"})):
            found = outcomes(sweep)
            assert {task for task, outcome in found.items() if outcome == ("miss", "rubric-missed")} == missed
            assert len([outcome for outcome in found.values() if outcome == ("pass", None)]) == 9 - len(missed)

    def test_a_subject_that_says_nothing(self, ended: Callable[[str], Ended]) -> None:
        """Five cells without an answer stop the sweep, and none of them is judged."""
        silent = ended(f"{FLUBBED} --wfbench-subject=mini:replay/silent")
        assert [(row.outcome, row.kind) for row in silent.rows] == [("unusable", "no-output")] * 5
        assert judged(silent) == []
        assert (silent.results / "comment.md").read_text().count("the agent ended without an answer") == 1


class TestNoCredit:
    def test_is_said_once_before_anything_ran(self, ended: Callable[[str], Ended]) -> None:
        """The sweep stops at its start: one sentence, and no cell."""
        sweep = ended(NO_CREDIT)
        assert sweep.rows == ()
        assert (sweep.results / "comment.md").read_text().count("no credit left") == 1
        assert sweep.output.count("no credit left") == 2  # where it stops, and in the verdict

    def test_is_nobodys_miss(self, ended: Callable[[str], Ended]) -> None:
        """Without a preflight nine cells are unusable, the cause is said once, and no miss is recorded."""
        sweep = ended(f"{NO_CREDIT} --wfbench-no-preflight --wfbench-outage-limit=0")
        assert list(outcomes(sweep).values()) == [("unusable", "judge-error")] * 9
        assert all(row.answer and row.resolved is None for row in sweep.rows)
        assert all(row.judge and row.judge.pass_ is None and row.judge.requests == 3 for row in sweep.rows)
        assert len(judged(sweep)) == 27
        assert (sweep.results / "comment.md").read_text().count("no credit left") == 1


def test_killed(clone: Path) -> None:
    """A run that was killed at its first row has left a comment that says INCOMPLETE."""
    (begun, _), (ran, shown) = Shell(clone).play(marked(README, "run", "killed"))
    assert begun.status == 0, begun.output
    assert (ran.status, settled(ran.output)) == (0, settled(shown))
    assert "INCOMPLETE" in shown


def test_post(clone: Path, ended: Callable[[str], Ended]) -> None:
    """Outside of a job the command says why it posts nothing; in one it posts the comment of the newest sweep."""
    smoke = ended(FLUBBED)
    [(ran, shown)] = Shell(clone).play(marked(README, "run", "post"))
    assert (ran.status, settled(ran.output)) == (0, settled(shown))
    with serving(StandIn()) as state:
        job = {"GITHUB_ACTIONS": "true", "GITHUB_API_URL": state.root, "GITHUB_REPOSITORY": "team/tool",
               "GITHUB_REF": "refs/pull/7/merge", "GITHUB_TOKEN": "of-the-stand-in"}  # fmt: skip
        [(ran, _)] = Shell(clone, job).play(marked(README, "run", "post"))
        assert (ran.status, settled(ran.output)) == (0, ["wfbench: posted a comment (1)"])
        (posted,) = state.comments
    newest = (clone / "results/latest").resolve()
    assert posted["body"] == (newest / "comment.md").read_text()
    assert smoke.results.parent == newest.parent
