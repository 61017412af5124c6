"""A ledger task with the real Claude Code binary, its model replayed behind the gateway."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pytest_wfbench.evidence.row import Row, Usage
from pytest_wfbench.gateway.cassette import load_cassettes
from tests.e2e.conftest import ROOT, Ended, require_agent

pytestmark = pytest.mark.slow

CASSETTES = ROOT / "tests" / "e2e" / "cassettes"
ARMS = ("baseline", "workflow_direct")


@pytest.fixture(scope="module")
def ended(once: Callable[..., Ended]) -> Ended:
    """Both arms on one task."""
    require_agent("claude-code")
    subject = f"claude-code:replay/{CASSETTES.relative_to(ROOT)}"
    return once("claude", "cases", "-k", "rounding", f"--wfbench-subject={subject}", f"--wfbench-arms={','.join(ARMS)}")


def row_of(ended: Ended, arm: str) -> Row:
    assert ended.status == 0, ended.output[-3000:]
    (row,) = [row for row in ended.rows if row.arm == arm]
    return row


def billed(arm: str) -> Usage:
    """What the arm's cassette says was billed."""
    (script,) = [s for s in load_cassettes(CASSETTES).scripts if s.cassette.match.arm == arm]
    turns = [turn.usage for turn in script.cassette.turns if turn.usage]
    ordinary = sum(usage.ordinary_input or 0 for usage in turns)
    read = sum(usage.cache_read_input or 0 for usage in turns)
    written = sum(usage.cache_write_input or 0 for usage in turns)
    output = sum(usage.output or 0 for usage in turns)
    return Usage(
        ordinary_input=ordinary,
        cache_read_input=read,
        cache_write_input=written,
        total_input=ordinary + read + written,
        output=output,
    )


@pytest.mark.parametrize("arm", ARMS)
class TestArm:
    def test_resolves(self, ended: Ended, arm: str) -> None:
        """The task is resolved by what the binary's own tools did."""
        row = row_of(ended, arm)
        assert (row.outcome, row.resolved, row.authored_tests_passed, row.oracle_passed) == ("pass", True, True, True)
        tools = {"Read": 1, "Edit": 1, "Bash": 2}
        assert row.tool_calls == tools | ({"Write": 1} if arm == "baseline" else {"Skill": 1})

    def test_tokens(self, ended: Ended, arm: str) -> None:
        """The row's tokens are the wire's, and those the cassette billed; the binary's own claim agrees."""
        row = row_of(ended, arm)
        assert row.usage == billed(arm)
        events = [event for event in ended.events if event.cell_id == row.cell_id and event.kind == "generate"]
        natives = [event.native_usage for event in events if event.native_usage]
        assert len(natives) == row.requests == row.num_turns
        assert sum(native["output_tokens"] for native in natives) == row.usage.output
        assert sum(native["cache_read_input_tokens"] for native in natives) == row.usage.cache_read_input
        assert (row.usage_source, row.usage_incomplete, row.models_answered) == (
            "wire",
            False,
            ("claude-sonnet-4-5-20250929",),
        )
        assert row.claimed_usage
        assert f'"outputTokens": {row.usage.output}' in json.dumps(row.claimed_usage)


class TestSkill:
    def test_shown(self, ended: Ended) -> None:
        """Under workflow_direct the transcript shows the Skill call and its success; baseline is offered no skill."""
        direct, baseline = row_of(ended, "workflow_direct"), row_of(ended, "baseline")
        assert (direct.skills_expected, direct.skills_used) == (("work",), ("work",))
        assert baseline.skills_used == ()
        lines = (ended.results / "cells" / direct.cell_id / "1" / "transcript.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        (call,) = [event for event in events if event["type"] == "tool_call" and event["name"] == "Skill"]
        (used,) = [event for event in events if event["type"] == "skill"]
        assert (call["arguments"], used["name"], used["call_id"], used["ok"]) == (
            {"skill": "work"},
            "work",
            call["id"],
            True,
        )
