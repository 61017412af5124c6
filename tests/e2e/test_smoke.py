"""Questions, end to end: what a provider that fails, a missing judge and each agent make of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.cli import main
from pytest_wfbench.derive import derive
from pytest_wfbench.evidence.store import read_rows
from pytest_wfbench.statistics.aggregate import cost_usd
from pytest_wfbench.sweep.preflight import PROMPT
from tests.e2e.conftest import LEFT_OUT, Ended, require_agent, sweep
from tests.serving import Request, Response, serve
from tests.upstream import Model

pytestmark = pytest.mark.slow

USED = "{ordinary_input: 50, cache_read_input: 0, cache_write_input: 0, output: 7}"
YES = '{"pass": true, "score": 1.0, "reason": "It says so."}'
COUNTING = """\
#!/bin/sh
echo x >> ~/count
printf '{"type": "text", "text": "again: %s"}\\n' "$(grep -c x ~/count)" >&$WFBENCH_EVENTS_FD
"""
END = 'echo \'{"type": "final", "status": "ok"}\' >&$WFBENCH_EVENTS_FD\n'


def suite(place: Path, questions: Mapping[str, str], judge: str | None = None) -> Path:
    """Write a suite: what the agent answers to each question, and what the judge says to all, if there is one."""
    demo, judging = place / "cassettes" / "demo", place / "cassettes" / "judge"
    demo.mkdir(parents=True)
    tasks = "".join(f"  - {{id: {name}, prompt: Tell me {name}., rubric: Tells {name}.}}\n" for name in questions)
    (place / "q.cases.yaml").write_text(f"kind: question\ndefaults: {{timeout: 60s}}\ntasks:\n{tasks}")
    for name, turn in questions.items():
        (demo / f"{name}.yaml").write_text(
            cassette("claude-sonnet-4-5-20250929", "anthropic", f"{{task: {name}}}", turn)
        )
    if judge:
        judging.mkdir()
        (judging / "all.yaml").write_text(cassette("gpt-5-mini", "openai", "{session: judge}", says(judge)))
    return place


def cassette(model: str, provider: str, match: str, turn: str) -> str:
    return f"model: {model}\nprovider: {provider}\nmatch: {match}\nturns:\n  - {{{turn}}}\n"


def says(text: str) -> str:
    return f"text: {json.dumps(text)}, usage: {USED}"


def ran(place: Path, *arguments: str) -> Ended:
    return sweep(place / "results", str(place), *arguments)


class Stumbling(Model):
    """Answers in words alone, once it has failed two requests that are no sign of life: as often as mini asks."""

    failed = 0

    def answer(self, request: Request) -> Response:
        body = json.loads(request.body)
        if PROMPT not in request.body.decode() and self.failed < 2:
            self.failed += 1
            error = {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded at first"}}
            return Response(json.dumps(error).encode(), status=529)
        body.pop("tools", None)
        return super().answer(replace(request, body=json.dumps(body).encode()))


LIVE = "mini:anthropic/claude-sonnet-4-5-20250929"


class TestProvider:
    @pytest.fixture(scope="class")
    @staticmethod
    def asked(tmp_path_factory: pytest.TempPathFactory) -> Ended:
        """Three questions to a cassette that fails as it should, and to a provider that fails at first."""
        failing = "error: {status: 529, type: overloaded_error, message: overloaded just now}"
        begun = f"tools: [{{name: bash, input: {{command: ls}}}}], usage: {USED}}}\n  - {{{failing}"
        questions = {"lost": failing, "crashed": begun, "checked": says("It is 3.")}
        place = suite(tmp_path_factory.mktemp("provider"), questions, YES)
        cases = (place / "q.cases.yaml").read_text()
        checked = cases.replace("rubric: Tells checked.", "rubric: Tells checked., checks: [{number: {value: 4}}]")
        (place / "q.cases.yaml").write_text(checked)
        provider = Stumbling("", LIVE.partition("/")[2])
        with serve(provider.answer, protocol="HTTP/1.1") as url, pytest.MonkeyPatch.context() as patched:
            patched.setenv("ANTHROPIC_BASE_URL", url)
            patched.setenv("ANTHROPIC_API_KEY", "sk-ant-key-of-these-tests")
            return ran(place, "--wfbench-subject=mini:replay/demo", f"--wfbench-subject={LIVE}")

    def test_lost_questions_are_asked_again_and_crashed_ones_never_judged(self, asked: Ended) -> None:
        """A provider's error before any output: two attempts, both recorded; after a first answer: one. None is judged.

        A failed check is a miss, for which no judge is asked either.
        """
        rows = [row for row in asked.rows if row.subject != LIVE]
        assert [(row.task, row.attempt, row.outcome, row.kind) for row in rows] == [
            ("lost", 1, "unusable", "provider-error"),
            ("lost", 2, "unusable", "provider-error"),
            ("crashed", 1, "unusable", "provider-error"),
            ("checked", 1, "miss", "check-failed"),
        ]
        assert all("overloaded just now" in str(row.reason) for row in rows[:3])
        assert "number 4 ± 0: not found" in str(rows[3].reason)
        assert {row.judge for row in rows} == {None}
        judged = {event.cell_id for event in asked.events if event.session == "judge"}
        assert not judged & {row.cell_id for row in rows}
        assert attempts(asked, rows[0].cell_id) == ["1", "2"]

    def test_the_second_attempt_counts(self, asked: Ended, capsys: pytest.CaptureFixture[str]) -> None:
        """A provider that fails before any output and answers the second attempt: both have rows, the last one counts.

        The log has what either asked, and the cell's cost is that of both, also where it is priced again.
        """
        first, second, *_ = [row for row in asked.rows if row.subject == LIVE]
        assert (first.task, first.attempt, first.outcome, first.kind) == ("lost", 1, "unusable", "provider-error")
        assert "overloaded at first" in str(first.reason)
        assert (first.requests, first.failed_requests, first.judge) == (2, 2, None)
        assert (second.cell_id, second.attempt, second.outcome) == (first.cell_id, 2, "pass")
        assert (second.answer, second.requests, second.failed_requests) == ("It is done.", 1, 0)
        assert second.judge
        own = [event for event in asked.events if event.cell_id == first.cell_id and event.session != "judge"]
        assert [event.status for event in own] == ["failure", "failure", "success"]
        assert attempts(asked, first.cell_id) == ["1", "2"]
        counts = derive(asked.results).verdict.counts
        (run,) = [run for run in read_rows(asked.results).runs if run.row.cell_id == first.cell_id]
        assert first.cost_usd is not None
        assert second.cost_usd
        assert cost_usd(run) == first.cost_usd + second.cost_usd
        assert (counts.planned, counts.unusable) == (6, 2)
        assert main(["cost", str(asked.results), "--json"]) == 0
        (bill,) = [line for line in json.loads(capsys.readouterr().out)["lines"] if line["subject"] == LIVE]
        assert bill["recorded"] == pytest.approx(sum(row.cost_usd or 0 for row in asked.rows if row.subject == LIVE))
        assert (bill["cells"], bill["repriced"]) == (3, pytest.approx(bill["recorded"]))


def attempts(ended: Ended, cell_id: str) -> list[str]:
    """The directories of a cell's attempts."""
    return sorted(path.name for path in (ended.results / "cells" / cell_id).iterdir())


class TestUsage:
    def run(self, place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: value for name, value in os.environ.items() if name not in LEFT_OUT and "LITELLM_PROXY" not in name
        }
        argv = [sys.executable, "-m", "pytest", str(place), "-p", "no:cacheprovider", "-q", *arguments]
        return subprocess.run(argv, cwd=place, env=kept | environment, capture_output=True, text=True, timeout=120)

    def test_a_missing_judge_is_a_usage_error(self, tmp_path: Path) -> None:
        """A selected rubric without a judge, and a judge without its key, exit 4 before anything is started."""
        place = suite(tmp_path, {"q1": says("x")})
        ended = self.run(place)
        assert (ended.returncode, "--wfbench-judge-model is missing" in ended.stdout) == (4, True), ended.stdout
        assert not (place / "results").exists()
        ended = self.run(place, "--wfbench-judge-model=litellm/team", LITELLM_PROXY_URL="https://llm.example/v1/")
        assert ended.returncode == 4
        assert "LITELLM_PROXY_API_KEY" in ended.stdout + ended.stderr
        assert "LITELLM_PROXY_URL" not in ended.stdout + ended.stderr

    def test_unselected_rubrics_need_no_judge(self, tmp_path: Path) -> None:
        """Only what is selected needs a judge."""
        place = suite(tmp_path, {"q1": says("x"), "q2": says("x")})
        cases = (place / "q.cases.yaml").read_text().replace("rubric: Tells q2.", "checks: [{contains: again}]")
        (place / "q.cases.yaml").write_text(cases)
        (place / "told.sh").write_text(COUNTING + END)
        assert self.run(place, "-k", "q2", f"--wfbench-subject=command:{place}/told.sh").returncode == 0


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


def test_a_command_answers_by_its_events(tmp_path: Path) -> None:
    """A script is called for each step in one home, and its answer judged; one that reports nothing is unsupported.

    One that crashed after it had said the same is never judged.
    """
    place = suite(tmp_path, {}, YES)
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
