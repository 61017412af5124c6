"""A sweep over a provider on this machine, recorded, and then replayed without it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.gateway.cassette import load_cassettes
from pytest_wfbench.gateway.conversation import read_conversation
from pytest_wfbench.gateway.reported import Reported
from tests.e2e.conftest import CASES, Ended, require_agent, sweep
from tests.gateway.scripted import Act, Request, scripted
from tests.suite import FILES, plant

pytestmark = pytest.mark.slow

AGENTS = {
    "mini": "openai/gpt-5",
    "claude-code": "anthropic/claude-sonnet-4-5",
    "codex": "openai/gpt-5",
}
SHELLS = {"mini": ("bash", "command"), "claude-code": ("Bash", "command"), "codex": ("exec_command", "cmd")}
SECRET = "sk-upstream-0f1e2d3c4b5a69788796"
ARMS = """\
arms:
  baseline:
    default: true
    sessions: [{name: work, prompt: "WORKING: {task}"}]
  planned:
    default: true
    sessions:
      - {name: plan, prompt: "PLANNING: {task}", produces: "plans/*.md"}
      - {name: work, prompt: "WORKING from {plan}: {task}"}
  stopped:
    default: true
    sessions:
      - {name: plan, prompt: "IDLING: {task}", produces: "plans/*.md"}
      - {name: work, prompt: "WORKING from {plan}: {task}"}
"""
SPAWN = {"description": "d", "prompt": "SIDE: look into it.", "subagent_type": "general-purpose"}
# What differs of two rows: when they were made, whose they are by name, and what ids and times are part of.
ASIDE = {
    "cell_id", "subject", "requested_model", "timings", "started_at", "recorded_at", "transcript_digest", "host",
}  # fmt: skip


@dataclass
class Model:
    """Plans, works and idles as it is told, stumbling now and then; every answer is billed differently."""

    seen: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Act:
        text, spoken = request.text, read_conversation(request.wire, request.body)
        word = next((word for word in ("IDLING", "PLANNING", "WORKING from", "WORKING") if word in text), "")
        side = "SIDE" if "SIDE:" in spoken.opening else "title" if spoken.wants_title else ""
        agent = _agent(request)
        place = (agent, word + side, spoken.turns)
        self.seen[place] += 1
        if place in (("claude-code", "WORKING", 1), ("codex", "WORKING", 1)) and self.seen[place] == 1:
            return Act("overloaded just now", status=529)
        number = sum(self.seen.values())
        usage = _usage(request.wire, 100 + number, 3 * number, 7 + number)
        return self._said(agent, word, side, spoken.turns, usage)

    def _said(self, agent: str, word: str, side: str, turn: int, usage: Reported) -> Act:
        if side:
            return Act(f"Said aside, with {SECRET}.", usage=usage)
        if word == "IDLING" or not word:
            return Act(*_done(agent), usage=usage)
        work = ["ls", f"echo {SECRET} > /dev/null; echo done > a.txt"]
        steps = ["mkdir -p plans && echo 'Write it down.' > plans/finish.md"] if word == "PLANNING" else work
        spawns = agent == "claude-code" and word == "WORKING"
        if turn == 0 and spawns:
            return Act("I ask\nsomebody: 'yes'.", (("Agent", SPAWN), (_shell(agent, "true"))), usage)
        at = turn - spawns
        return Act("Next.", (_shell(agent, steps[at]),), usage) if at < len(steps) else Act(*_done(agent), usage=usage)


def _agent(request: Request) -> str:
    names = {tool.get("name") or tool.get("function", {}).get("name") for tool in request.body.get("tools") or ()}
    if "Bash" in names or request.wire == "anthropic-messages":
        return "claude-code"
    return "codex" if "exec_command" in names else "mini"


def _shell(agent: str, command: str) -> tuple[str, dict[str, Any]]:
    name, key = SHELLS[agent]
    return name, {key: command, **({} if agent in ("codex", "mini") else {"description": "What it does"})}


def _done(agent: str) -> tuple[str, tuple[tuple[str, dict[str, Any]], ...]]:
    if agent == "mini":
        return "", (_shell(agent, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),)
    return "Done.", ()


def _usage(wire: str, ordinary: int, read: int, output: int) -> Reported:
    if wire == "anthropic-messages":
        return Reported(
            ordinary_input=ordinary, cache_read_input=read, cache_write_input=5, cache_write_hour=2, output=output
        )
    return Reported(total_input=ordinary + read, cache_read_input=read, output=output, reasoning_output=3)


@dataclass(frozen=True)
class Pair:
    """A sweep as it was recorded, and as it was replayed; ``directory`` holds the cassettes.

    ``billed`` is the output that the provider's own ledger holds.
    """

    live: Ended
    replayed: Ended
    directory: Path
    billed: int


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Agents of three wire formats in three arms, one of which ends early."""
    for agent in AGENTS:
        require_agent(agent)
    root = tmp_path_factory.mktemp("recorded")
    plant(root, {**FILES, "cases/tiny.cases.yaml": CASES, "cases/arms.yaml": ARMS})
    with scripted(Model()) as provider, pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI", "ANTHROPIC"):
            patch.setenv(f"{name}_API_KEY", SECRET)
            patch.setenv(f"{name}_BASE_URL", provider.url)
        subjects = [f"--wfbench-subject={agent}:{model}" for agent, model in AGENTS.items()]
        live = sweep(root / "live", "cases", "-n2", *subjects, "--wfbench-record=tape", cwd=root)
        billed = sum(entry.act.usage.output or 0 for entry in provider.ledger.entries)
    subjects = [f"--wfbench-subject={agent}:replay/tape" for agent in AGENTS]
    return Pair(live, sweep(root / "replayed", "cases", "-n2", *subjects, cwd=root), root / "tape", billed)


def told(ended: Ended) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows by agent and arm, without what is aside."""
    rows = {}
    for row in ended.rows:
        plain = {key: value for key, value in json.loads(row.to_json()).items() if key not in ASIDE}
        for session in (plain["claimed_usage"] or {}).get("sessions") or ():
            # What claude thinks of the model by its name.
            session.pop("model_usage", None)
        rows[row.agent, row.arm] = plain
    return rows


class TestRecord:
    @pytest.mark.parametrize("arm", ["baseline", "planned", "stopped"])
    @pytest.mark.parametrize("agent", AGENTS)
    def test_rows_are_the_same(self, pair: Pair, agent: str, arm: str) -> None:
        """A sweep replayed offline from its own recording has the rows that it had live, times and ids aside."""
        live, replayed = told(pair.live)[agent, arm], told(pair.replayed)[agent, arm]
        assert replayed == live
        assert live["outcome"] == ("miss" if arm == "stopped" else "pass"), live["reason"]
        assert (live["cost_usd"] is None, live["usage_incomplete"]) == (False, False)

    def test_what_is_in_them(self, pair: Pair) -> None:
        """An error and its retry, a subagent and hours of cache were among what was recorded."""
        row = told(pair.live)["claude-code", "baseline"]
        assert row["failed_requests"] == 1
        assert row["subagent_share"] > 0
        assert row["models_answered"] == ["claude-sonnet-4-5-20250929"]

    def test_tokens_are_the_ledgers(self, pair: Pair) -> None:
        """The rows' tokens, and those of the preflight, are what the provider billed."""
        preflight = [event.native_usage or {} for event in pair.live.events if event.session == "preflight"]
        aside = sum(usage.get("output_tokens", usage.get("completion_tokens", 0)) for usage in preflight)
        assert sum(row.usage.output or 0 for row in pair.live.rows) + aside == pair.billed

    def test_no_secret(self, pair: Pair) -> None:
        """No cassette holds the provider's key, wherever the model said it."""
        texts = [path.read_text() for path in pair.directory.iterdir()]
        assert texts
        assert not [text for text in texts if SECRET in text]
        assert any("[redacted]" in text for text in texts)

    def test_fully_bound(self, pair: Pair) -> None:
        """Every session of every cell has its cassette, bound to all that a cassette can be, also one never reached."""
        scripts = load_cassettes(pair.directory).scripts
        matches = [script.cassette.match for script in scripts]
        sessions = [("baseline", "work"), *product(("planned", "stopped"), ("plan", "work"))]
        assert {(match.agent, match.arm, match.session) for match in matches} == {
            (agent, *session) for agent, session in product(AGENTS, sessions)
        }
        assert {match.specificity for match in matches} == {6}
