"""Every agent with a model, real, in every arm of one small suite: one command, each through its own wire format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from pytest_wfbench.evidence.row import Row, Usage
from tests.e2e.conftest import CASES, Ended, require_agent, sweep
from tests.suite import FILES, plant

pytestmark = pytest.mark.slow

ARMS = ("baseline", "workflow", "workflow_direct")
ANTHROPIC = {"provider": "anthropic", "model": "claude-sonnet-4-5-20250929"}
OPENAI = {"provider": "openai", "model": "gpt-5.5-2026-04-23"}
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

ARMS_FILE = """\
arms:
  baseline:
    tools: {deny: [Skill]}
    sessions: [{name: work}]
  workflow:
    skills: [plan, work]
    sessions:
      - {name: plan, skill: plan, prompt: "Plan: {task}", produces: "plans/*.md"}
      - {name: work, skill: work, prompt: "Work from {plan}: {task}"}
  workflow_direct:
    skills: [work]
    sessions: [{name: work, skill: work}]
"""


@dataclass(frozen=True)
class Speaker:
    """How an agent's model calls its tools: a shell, and a skill, by name and argument; and how its wire reports."""

    shell: tuple[str, str]
    skill: tuple[str, str] | None
    wire: str
    provider: Mapping[str, str]
    more: Mapping[str, str]
    last: Mapping[str, Any]

    def run(self, command: str) -> dict[str, Any]:
        name, key = self.shell
        return {"tools": [{"name": name, "input": {key: command, **self.more}}]}

    def use(self, skill: str) -> dict[str, Any]:
        if self.skill is None:
            return self.run(f"cat .claude/skills/{skill}/SKILL.md")
        name, key = self.skill
        return {"tools": [{"name": name, "input": {key: skill}}]}


RELEASE = re.compile(r"(claude-code|opencode|codex|mini-swe-agent) \d+\.\d+\.\d+")
DESCRIBED = {"description": "What it does"}
DONE = {"text": "Done."}
SPEAKERS: Mapping[str, Speaker] = {
    "claude-code": Speaker(
        ("Bash", "command"), ("Skill", "skill"), "anthropic-messages", ANTHROPIC, DESCRIBED, DONE
    ),
    # It asks for chat completions: with tools and an effort LiteLLM takes these to OpenAI's other API.
    "opencode": Speaker(("bash", "command"), ("skill", "name"), "openai-responses", OPENAI, DESCRIBED, DONE),
    "codex": Speaker(("exec_command", "cmd"), None, "openai-responses", OPENAI, {}, DONE),
    "mini": Speaker(
        ("bash", "command"), None, "anthropic-messages", ANTHROPIC, {},
        {"tools": [{"name": "bash", "input": {"command": SUBMIT}}]},
    ),
}  # fmt: skip
PLAN = "mkdir -p plans && echo 'Write it down.' > plans/finish.md"
WORK = "echo done > a.txt"


def turns(speaker: Speaker, arm: str, session: str, numbers: count[int]) -> list[dict[str, Any]]:
    """One session: the skill where the arm has one, the work, the end; every turn is billed differently."""
    begin = [] if arm == "baseline" else [speaker.use(session)]
    said = [*begin, speaker.run(PLAN if session == "plan" else WORK), speaker.last]
    return [turn | {"usage": billed(next(numbers))} for turn in said]


def billed(number: int) -> dict[str, int]:
    return {
        "ordinary_input": 100 + number,
        "cache_read_input": 3 * number,
        "cache_write_input": 0,
        "output": 7 + number,
    }


def cassettes() -> dict[tuple[str, str, str], dict[str, Any]]:
    """The scripts of all sessions, by agent, arm and session."""
    numbers = count(1)
    sessions = [(arm, session) for arm in ARMS for session in (("plan", "work") if arm == "workflow" else ("work",))]
    return {
        (agent, arm, session): {
            **speaker.provider,
            "match": {"agent": agent, "arm": arm, "session": session},
            "turns": turns(speaker, arm, session, numbers),
        }
        for agent, speaker in SPEAKERS.items()
        for arm, session in sessions
    }


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All agents, all arms, two workers."""
    for agent in SPEAKERS:
        require_agent(agent)
    root = tmp_path_factory.mktemp("agents")
    plan = {"cases/tiny/.claude/skills/plan/SKILL.md": "---\nname: plan\ndescription: How we plan\n---\nPlan first.\n"}
    work = {"cases/tiny/.claude/skills/work/SKILL.md": "---\nname: work\ndescription: How we work\n---\nWork well.\n"}
    files = {**FILES, **plan, **work, "cases/tiny.cases.yaml": CASES, "cases/arms.yaml": ARMS_FILE}
    for (agent, arm, session), cassette in cassettes().items():
        files[f"cases/cassettes/agents/{agent}.{arm}.{session}.yaml"] = json.dumps(cassette)
    plant(root, files)
    subjects = [f"--wfbench-subject={agent}:replay/agents" for agent in SPEAKERS]
    asked = (f"--wfbench-arms={','.join(ARMS)}", "--wfbench-effort=low", "--wfbench-agent-option=codex.verbosity=high")
    return sweep(root / "results", "cases", "-n", "2", *subjects, *asked, cwd=root)


def row_of(ended: Ended, agent: str, arm: str) -> Row:
    (row,) = [row for row in ended.rows if (row.agent, row.arm) == (agent, arm)]
    return row


class TestAgents:
    def test_all_graded(self, ended: Ended) -> None:
        """Twelve rows, each resolved by what the agent's own tools did; the sweep is well."""
        assert ended.status == 0, ended.output[-3000:]
        assert len(ended.rows) == len(SPEAKERS) * len(ARMS)
        assert {(row.outcome, row.kind, row.resolved) for row in ended.rows} == {("pass", None, True)}

    @pytest.mark.parametrize("arm", ARMS)
    @pytest.mark.parametrize("agent", SPEAKERS)
    def test_tokens(self, ended: Ended, agent: str, arm: str) -> None:
        """A row's tokens are those that its cassettes billed, to the token, in whichever wire format they came."""
        row = row_of(ended, agent, arm)
        usages = [
            turn["usage"] for key, script in cassettes().items() if key[:2] == (agent, arm) for turn in script["turns"]
        ]
        totals = {name: sum(usage[name] for usage in usages) for name in usages[0]}
        whole = sum(value for name, value in totals.items() if name != "output")
        assert row.usage == Usage(**totals, total_input=whole)
        assert (row.requests, row.failed_requests, row.num_turns) == (len(usages), 0, len(usages))
        assert (row.usage_source, row.usage_incomplete) == ("wire", False)
        assert row.models_answered == (SPEAKERS[agent].provider["model"],)
        asked = [event for event in ended.events if event.cell_id == row.cell_id and event.kind == "generate"]
        assert {event.wire for event in asked} == {SPEAKERS[agent].wire}

    @pytest.mark.parametrize("agent", SPEAKERS)
    def test_skills(self, ended: Ended, agent: str) -> None:
        """The use of each skill is concluded from the agent's own stream; the bare task uses none."""
        used = {arm: row_of(ended, agent, arm).skills_used for arm in ARMS}
        assert used == {"baseline": (), "workflow": ("plan", "work"), "workflow_direct": ("work",)}

    @pytest.mark.parametrize("agent", SPEAKERS)
    def test_bound(self, ended: Ended, agent: str) -> None:
        """A row says which release ran, with which effort and options; so does the sweep, and the lock binds them."""
        row = row_of(ended, agent, "workflow")
        assert RELEASE.fullmatch(row.agent_version or "")
        assert (row.effort, row.agent_options) == ("low", {"verbosity": "high"} if agent == "codex" else None)
        told = json.loads((ended.results / "sweep.json").read_text())
        [subject] = [entry for entry in told["subjects"] if entry["agent"] == agent]
        assert (subject["effort"], subject["options"]) == (row.effort, row.agent_options or {})
        assert {"effort", "agent_options"} <= told["lock"].keys()
