"""Questions, end to end: the shipped smoke suite, and what a broken judge, provider or agent makes of a sweep."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.derive import derive
from tests.e2e.conftest import LEFT_OUT, Ended, require_agent, sweep

pytestmark = pytest.mark.slow

USED = "{ordinary_input: 50, cache_read_input: 0, cache_write_input: 0, output: 7}"
NO_CREDIT = "error: {status: 402, type: insufficient_quota, message: no credit left for team-x}"
YES = '{"pass": true, "score": 1.0, "reason": "It says so."}'


@pytest.fixture(scope="session")
def smoke(once: Callable[..., Ended]) -> Ended:
    """The shipped suite, as a new user runs it."""
    return once("smoke", "cases/smoke", "-m", "smoke")


class TestShipped:
    def test_nine_questions_one_flubbed(self, smoke: Ended) -> None:
        """Eight pass, the flubbed one is a soft miss with the judge's reason, and the run is green."""
        assert smoke.status == 0, smoke.output
        outcomes = {row.task: (row.outcome, row.kind) for row in smoke.rows}
        assert len(outcomes) == 9
        assert outcomes.pop("last-day-of-january") == ("miss", "rubric-missed")
        assert set(outcomes.values()) == {("pass", None)}
        assert "PASS WITH MISSES" in smoke.output

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
        judged = [event for event in smoke.events if event.session == "judge"]
        assert len([event for event in judged if event.cell_id != "preflight"]) == 9
        assert len([event for event in judged if event.cell_id == "preflight"]) == 1
        assert sum(row.requests or 0 for row in smoke.rows) == len(smoke.events) - len(judged)


def suite(place: Path, questions: Mapping[str, str], judge: Mapping[str, str]) -> Path:
    """Write a suite: what the agent answers to each question, and the judge's turns by question (``*``: all others)."""
    demo, judging = place / "cassettes" / "demo", place / "cassettes" / "judge"
    for directory in (demo, judging):
        directory.mkdir(parents=True)
    tasks = "".join(f"  - {{id: {name}, prompt: Tell me {name}., rubric: Tells {name}.}}\n" for name in questions)
    (place / "q.cases.yaml").write_text(f"kind: question\ndefaults: {{timeout: 60s}}\ntasks:\n{tasks}")
    for name, turn in questions.items():
        (demo / f"{name}.yaml").write_text(
            cassette("claude-sonnet-4-5-20250929", "anthropic", f"{{task: {name}}}", turn)
        )
    for name, turn in judge.items():
        match = "{session: judge}" if name == "*" else f"{{task: {name}, session: judge}}"
        (judging / f"{name.replace('*', 'all')}.yaml").write_text(cassette("gpt-5-mini", "openai", match, turn))
    return place


def cassette(model: str, provider: str, match: str, turn: str) -> str:
    return f"model: {model}\nprovider: {provider}\nmatch: {match}\nturns:\n  - {{{turn}}}\n"


def says(text: str) -> str:
    return f"text: {json.dumps(text)}, usage: {USED}"


def verdict(passed: bool) -> str:
    return says(json.dumps({"pass": passed, "score": float(passed), "reason": "Because it does, or does not."}))


def nine(answer: str = "It is so.") -> dict[str, str]:
    return {f"q{number}": says(answer) for number in range(1, 10)}


def ran(place: Path, *arguments: str) -> Ended:
    return sweep(place / "results", str(place), *arguments)


def word(ended: Ended) -> tuple[str, int]:
    return derive(ended.results).verdict.word, ended.status


class TestJudgeOutage:
    def test_is_said_once_before_anything_ran(self, tmp_path: Path) -> None:
        """A judge that answers 402 stops the sweep at its start: one sentence, BROKEN, exit 1, no cell."""
        ended = ran(suite(tmp_path, nine(), {"*": NO_CREDIT}))
        assert word(ended) == ("BROKEN", 1)
        assert ended.rows == ()
        assert (ended.results / "comment.md").read_text().count("no credit left") == 1
        assert ended.output.count("no credit left") <= 2  # where it stops, and in the verdict
        assert "the judge replay/judge: 402" in ended.output

    def test_is_nobodys_miss(self, tmp_path: Path) -> None:
        """Without a preflight nine cells are unusable, the cause is said once, and no miss is recorded."""
        ended = ran(suite(tmp_path, nine(), {"*": NO_CREDIT}), "--wfbench-no-preflight", "--wfbench-outage-limit=0")
        assert word(ended) == ("BROKEN", 1)
        assert {(row.outcome, row.kind) for row in ended.rows} == {("unusable", "judge-error")}
        assert len(ended.rows) == 9
        assert all(row.answer == "It is so." and row.resolved is None for row in ended.rows)
        assert all(row.judge and row.judge.pass_ is None and row.judge.requests == 3 for row in ended.rows)
        banner = [line for line in (ended.results / "comment.md").read_text().splitlines() if line.startswith(">")]
        assert "\n".join(banner).count("no credit left") == 1, banner


class TestVerdicts:
    @pytest.fixture(scope="class")
    @staticmethod
    def missed(tmp_path_factory: pytest.TempPathFactory) -> Path:
        place = tmp_path_factory.mktemp("missed")
        return suite(place, nine(), {"*": verdict(True), "q3": verdict(False), "q5": verdict(False)})

    def test_two_misses_are_green(self, missed: Path) -> None:
        """Two rubric misses of nine: PASS WITH MISSES, exit 0."""
        ended = ran(missed)
        assert word(ended) == ("PASS WITH MISSES", 0)
        assert sorted(row.task for row in ended.rows if row.kind == "rubric-missed") == ["q3", "q5"]

    def test_below_a_floor_they_are_red(self, missed: Path) -> None:
        """Three misses of nine under a floor of 0.7: BELOW FLOOR, exit 1."""
        shutil.copy(missed / "cassettes/judge/q3.yaml", missed / "cassettes/judge/q7.yaml")
        text = (missed / "cassettes/judge/q7.yaml").read_text().replace("task: q3", "task: q7")
        (missed / "cassettes/judge/q7.yaml").write_text(text)
        assert word(ran(missed, "--wfbench-min-pass=0.7")) == ("BELOW FLOOR", 1)

    def test_a_subject_that_says_nothing(self, tmp_path: Path) -> None:
        """An agent that answers nothing breaks the sweep: five in a row stop it, none of them judged."""
        end = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
        silent = dict.fromkeys(nine(), f"tools: [{{name: bash, input: {{command: {end}}}}}], usage: {USED}")
        ended = ran(suite(tmp_path, silent, {"*": verdict(True)}))
        assert word(ended) == ("BROKEN", 1)
        assert [(row.outcome, row.kind) for row in ended.rows] == [("unusable", "no-output")] * 5
        assert not [event for event in ended.events if event.session == "judge" and event.cell_id != "preflight"]


class TestProvider:
    def test_lost_questions_are_asked_again_and_crashed_ones_never_judged(self, tmp_path: Path) -> None:
        """A provider's error before any output: two attempts, both recorded; after a first answer: one. None is judged.

        A failed check is a miss, for which no judge is asked either.
        """
        failing = "error: {status: 529, type: overloaded_error, message: overloaded just now}"
        begun = f"tools: [{{name: bash, input: {{command: ls}}}}], usage: {USED}}}\n  - {{{failing}"
        place = suite(tmp_path, {"lost": failing, "crashed": begun, "checked": says("It is 3.")}, {"*": verdict(True)})
        cases = (place / "q.cases.yaml").read_text()
        checked = cases.replace("rubric: Tells checked.", "rubric: Tells checked., checks: [{number: {value: 4}}]")
        (place / "q.cases.yaml").write_text(checked)
        ended = ran(place)
        found = [(row.task, row.attempt, row.outcome, row.kind) for row in ended.rows]
        assert found == [
            ("lost", 1, "unusable", "provider-error"),
            ("lost", 2, "unusable", "provider-error"),
            ("crashed", 1, "unusable", "provider-error"),
            ("checked", 1, "miss", "check-failed"),
        ]
        assert all("overloaded just now" in str(row.reason) for row in ended.rows[:3])
        assert "number 4 ± 0: not found" in str(ended.rows[3].reason)
        assert {row.judge for row in ended.rows} == {None}
        assert not [event for event in ended.events if event.session == "judge" and event.cell_id != "preflight"]
        lost = ended.rows[0].cell_id
        assert sorted(path.name for path in (ended.results / "cells" / lost).iterdir()) == ["1", "2"]


class TestUsage:
    def run(self, place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value for name, value in os.environ.items() if name not in LEFT_OUT and "LITELLM_PROXY" not in name
        }
        argv = [sys.executable, "-m", "pytest", str(place), "-p", "no:cacheprovider", "-q", *arguments]
        return subprocess.run(argv, cwd=place, env=kept | environment, capture_output=True, text=True, timeout=120)

    def test_a_missing_judge_is_a_usage_error(self, tmp_path: Path) -> None:
        """A selected rubric without a judge, and a judge without its key, exit 4 before anything is started."""
        place = suite(tmp_path, {"q1": says("x")}, {})
        shutil.rmtree(place / "cassettes" / "judge")
        ended = self.run(place)
        assert (ended.returncode, "--wfbench-judge-model is missing" in ended.stdout) == (4, True), ended.stdout
        assert not (place / "results").exists()
        ended = self.run(place, "--wfbench-judge-model=litellm/team", LITELLM_PROXY_URL="https://llm.example/v1/")
        assert ended.returncode == 4
        assert "LITELLM_PROXY_API_KEY" in ended.stdout + ended.stderr
        assert "LITELLM_PROXY_URL" not in ended.stdout + ended.stderr

    def test_unselected_rubrics_need_no_judge(self, tmp_path: Path) -> None:
        """Only what is selected needs a judge."""
        place = suite(tmp_path, {"q1": says("x"), "q2": says("x")}, {})
        shutil.rmtree(place / "cassettes" / "judge")
        cases = (place / "q.cases.yaml").read_text().replace("rubric: Tells q2.", "checks: [{contains: x}]")
        (place / "q.cases.yaml").write_text(cases)
        assert self.run(place, "-k", "q2").returncode == 0


TALK = """\
kind: question
defaults: {timeout: 5m}
tasks:
  - id: talk
    steps: ["Remember the word blue.", "Which word was it?"]
    checks: [{contains: blue}, {contains: shall, not: true}]
"""
WIRES: Mapping[str, Mapping[str, Any]] = {
    "claude-code": {"model": "claude-sonnet-4-5-20250929", "provider": "anthropic"},
    "codex": {"model": "gpt-5.5-2026-04-23", "provider": "openai"},
    "opencode": {"model": "gpt-5.5-2026-04-23", "provider": "openai"},
    "mini": {"model": "gpt-5.5-2026-04-23", "provider": "openai"},
}


def test_every_agent_converses(tmp_path: Path) -> None:
    """Claude Code, codex, opencode and mini answer a second prompt with the first one in their history.

    The second turn of each script is only reached by a request that holds the answer to the first prompt.
    """
    for agent in WIRES:
        require_agent(agent)
    demo = tmp_path / "cassettes" / "demo"
    demo.mkdir(parents=True)
    (tmp_path / "talk.cases.yaml").write_text(TALK)
    for agent, who in WIRES.items():
        turns = f"{says('I shall.')}}}\n  - {{{says('It was blue.')}"
        text = cassette(who["model"], who["provider"], f"{{agent: {agent}}}", turns)
        (demo / f"{agent}.yaml").write_text(text)
    ended = ran(tmp_path, *(f"--wfbench-subject={agent}:replay/demo" for agent in WIRES))
    assert ended.status == 0, ended.output
    assert {row.agent: (row.answer, row.num_turns) for row in ended.rows} == dict.fromkeys(WIRES, ("It was blue.", 2))


COUNTING = """\
#!/bin/sh
echo x >> ~/count
printf '{"type": "text", "text": "again: %s"}\\n' "$(grep -c x ~/count)" >&$WFBENCH_EVENTS_FD
"""
END = 'echo \'{"type": "final", "status": "ok"}\' >&$WFBENCH_EVENTS_FD\n'


def test_a_command_answers_by_its_events(tmp_path: Path) -> None:
    """A script is called for each step in one home, and its answer judged; one that reports nothing is unsupported.

    One that crashed after it had said the same is never judged.
    """
    place = suite(tmp_path, {}, {"*": says(YES)})
    counted = TALK.replace("contains: blue}", "contains: 'again: 2'}") + "    rubric: Counts.\n"
    (place / "q.cases.yaml").write_text(counted)
    crashing = 'test "$(grep -c x ~/count)" = 1 || exit 3\n'
    scripts = {"told": COUNTING + END, "crash": COUNTING + crashing + END, "mute": "#!/bin/sh\necho again\n"}
    for name, text in scripts.items():
        (place / f"{name}.sh").write_text(text)
    ended = ran(place, *(f"--wfbench-subject=command:{place}/{name}.sh" for name in scripts))
    assert ended.status == 1, ended.output
    told, crash = ended.rows
    assert (told.answer, told.outcome, told.judge and told.judge.pass_) == ("again: 2", "pass", True)
    assert (crash.answer, crash.outcome, crash.kind, crash.judge) == ("again: 2", "unusable", "session-error", None)
    assert {event.cell_id for event in ended.events if event.session == "judge"} == {"preflight", told.cell_id}
    assert "reports no events, so what it answers cannot be told" in (ended.results / "sweep.json").read_text()
