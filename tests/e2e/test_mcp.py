"""A task with an MCP server by the official SDK, which real agents call from their sandboxes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.evidence.row import Row
from tests.e2e.conftest import Ended, require_agent, sweep
from tests.suite import CHECK, ORACLE, plant

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "mcp" / "server.py"
AGENTS = ("claude-code", "opencode", "codex")
CASES = f"""\
kind: implementation
tasks:
  - id: ask-the-shelf
    repo: tiny
    prompt: Ask the shelf what the notes say, and do it.
    verify: "true"
    timeout: {{session: 60s}}
    mcp: {{shelf: {{command: [python3, server.py], env: {{SHELF: oak}}}}}}
    {ORACLE}
"""
ARMS = """\
arms:
  baseline: {default: true, sessions: [{name: work}]}
  baseline_nomcp: {default: true, mcp: none, sessions: [{name: work}]}
"""
# What each agent calls the server's tool, and its shell.
READ = {"claude-code": "mcp__shelf__read", "opencode": "shelf_read", "codex": "read"}
DONE = "echo done > a.txt"
SHELL = {
    "claude-code": {"name": "Bash", "input": {"command": DONE}},
    "opencode": {"name": "bash", "input": {"command": DONE, "description": "Do it"}},
    "codex": {"name": "exec_command", "input": {"cmd": DONE}},
}
USAGE = {"ordinary_input": 10, "cache_read_input": 0, "cache_write_input": 0, "output": 5}


def cassette(agent: str) -> str:
    """A script in which the agent asks the server, then works."""
    turns = [
        {"tools": [{"name": READ[agent], "input": {"name": "notes.txt"}}], "usage": USAGE},
        {"tools": [SHELL[agent]], "usage": USAGE},
        {"text": "Done.", "usage": USAGE},
    ]
    provider = {"claude-code": ("anthropic", "claude-sonnet-4-5")}.get(agent, ("openai", "gpt-5.1"))
    head = {"model": provider[1], "provider": provider[0], "match": {"agent": agent}}
    return json.dumps(head | {"turns": turns})


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Every agent that has MCP, and one that has none, with and without the server."""
    for agent in AGENTS:
        require_agent(agent)
    root = tmp_path_factory.mktemp("mcp")
    files = {
        "cases/shelf.cases.yaml": CASES,
        "cases/arms.yaml": ARMS,
        "cases/tiny/a.txt": "open\n",
        "cases/tiny/notes.txt": "write done into a.txt\n",
        "cases/tiny/server.py": SERVER.read_text(),
        "oracles/check.sh": CHECK,
        **{f"cases/cassettes/shelf/{agent}.yaml": cassette(agent) for agent in AGENTS},
        "cases/cassettes/shelf/mini.yaml": cassette("claude-code").replace("claude-code", "mini"),
    }
    plant(root, files)
    subjects = [f"--wfbench-subject={agent}:replay/shelf" for agent in (*AGENTS, "mini")]
    return sweep(root / "results", "cases", *subjects, "-n", "2", "-rs", cwd=root)


def results(ended: Ended, row: Row) -> list[dict[str, object]]:
    """What the row's tools answered."""
    lines = (ended.results / "cells" / row.cell_id / "1" / "transcript.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["type"] == "tool_result"]


@pytest.fixture
def row(ended: Ended) -> Callable[[str, str], Row]:
    def find(agent: str, arm: str) -> Row:
        (found,) = [row for row in ended.rows if (row.agent, row.arm) == (agent, arm)]
        return found

    return find


class TestServers:
    @pytest.mark.parametrize("agent", AGENTS)
    def test_called(self, ended: Ended, row: Callable[[str, str], Row], agent: str) -> None:
        """An agent calls the task's server and reads what it says of the start state."""
        found = row(agent, "baseline")
        assert found.outcome == "pass", found.reason
        first = results(ended, found)[0]
        assert not first["error"]
        assert "write done into a.txt" in str(first["output"])

    @pytest.mark.parametrize("agent", AGENTS)
    def test_arm_without(self, ended: Ended, row: Callable[[str, str], Row], agent: str) -> None:
        """An arm without servers has none: the same call comes to nothing."""
        found = row(agent, "baseline_nomcp")
        assert not any("write done into a.txt" in str(result["output"]) for result in results(ended, found))

    def test_agent_without(self, ended: Ended) -> None:
        """A subject without MCP is unsupported where a task has servers, and runs where an arm goes without."""
        assert "mini:replay/shelf has no MCP, which the servers of ask-the-shelf need" in ended.output
        assert [row.arm for row in ended.rows if row.agent == "mini"] == ["baseline_nomcp"]
