"""Budgets and the number of requests at once, in whole sweeps with an agent that asks a model."""

from __future__ import annotations

import json
import math
from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Event
from tests.suite import Suite

pytestmark = pytest.mark.slow

SUBJECT = ("--wfbench-subject=mini:replay/paid", "--wfbench-prices=prices.json", "--wfbench-arms=baseline")
PRICE = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.01, "max_output_tokens": 1000}
# What each answer costs: 100 and 10 tokens.
ANSWER = 0.2
USAGE = "usage: {ordinary_input: 100, cache_read_input: 0, cache_write_input: 0, output: 10}"
WORK = f'  - tools: [{{name: bash, input: {{command: "echo done > a.txt"}}}}]\n    delay: 400ms\n    {USAGE}\n'
END = f"  - text: Done.\n    {USAGE}\n"


def script(suite: Suite, task: str, steps: int) -> None:
    """Write a cassette whose model works so many times before it says that it is done."""
    head = f"model: claude-paid\nprovider: anthropic\nmatch: {{task: {task}}}\nturns:\n"
    suite.put(f"cases/cassettes/paid/{task}.yaml", head + steps * WORK + END)


@pytest.fixture
def paid(suite: Suite) -> Suite:
    """A suite whose model answers two times for `finish`, four for `other`, at a price."""
    script(suite, "finish", 1)
    script(suite, "other", 3)
    suite.put("prices.json", json.dumps({"claude-paid": PRICE}))
    return suite


def events(suite: Suite) -> list[Event]:
    return [Event.model_validate_json(line) for line in (suite.results / "usage.jsonl").read_text().splitlines()]


def report(suite: Suite) -> str:
    return (suite.results / "report.md").read_text().replace("\\", "")


def spans(found: list[Event]) -> list[tuple[datetime, datetime]]:
    return sorted((datetime.fromisoformat(e.started_at), datetime.fromisoformat(e.completed_at)) for e in found)


class TestBudgets:
    def test_of_a_cell(self, paid: Suite) -> None:
        """A cell that is refused for its own budget is a miss with its numbers; one that just fits is none."""
        ran = paid.run("-k", "finish or other", *SUBJECT, "--wfbench-cell-max-cost=0.4", agent="")
        rows = {row["task"]: row for row in paid.rows()}
        assert (rows["finish"]["outcome"], rows["finish"]["kind"]) == ("pass", None), ran.outlines
        assert (rows["other"]["outcome"], rows["other"]["kind"]) == ("miss", "budget-exceeded")
        assert [rows[task]["requests"] for task in ("finish", "other")] == [2, 2]
        assert [rows[task]["cost_usd"] for task in ("finish", "other")] == pytest.approx([2 * ANSWER] * 2)
        assert (ran.ret, paid.sweep()["stop"]) == (0, None)
        assert "1 attempt ended by the cell's budget of $0.4000" in report(paid)

    def test_of_a_sweep(self, paid: Suite) -> None:
        """No cell starts beyond the budget, those it cuts are no evidence, and what went beyond it is told."""
        arguments = ("-k", "finish or other", "--wfbench-runs=4", "-n2", "--wfbench-max-cost=1")
        ran = paid.run(*arguments, *SUBJECT, agent="")
        sweep, rows = paid.sweep(), paid.rows()
        kinds = Counter((row["outcome"], row["kind"]) for row in rows)
        cut = kinds.pop(("unusable", "cancelled"), 0)
        assert set(kinds) <= {("pass", None)}, ran.outlines
        assert cut <= 2
        skipped = [entry for entry in sweep["skipped"] if entry["kind"] == "budget-stop"]
        assert len(skipped) == 8 - len(rows) > 0
        assert (ran.ret, sweep["exit_status"], sweep["run_status"]) == (1, 1, "aborted")
        assert sweep["stop"]["kind"] == "budget"
        spending = sweep["spending"]
        assert spending["charged"] == pytest.approx(len(events(paid)) * ANSWER)
        assert spending["charged"] >= 1
        assert spending["overshoot"] == pytest.approx(spending["charged"] - 1)
        # At most one request for each of the two that ran.
        assert spending["overshoot"] <= 2 * ANSWER + 1e-9
        text = report(paid)
        assert "INCOMPLETE" in text
        assert "the sweep's budget of $1 is spent (--wfbench-max-cost)" in text
        assert "charged to the sweep's budget of $1.00" in text
        assert ("beyond it by requests that were under way" in text) == (spending["overshoot"] > 0)
        assert "INCOMPLETE" in ran.stdout.str()

    def test_that_just_lasts(self, paid: Suite) -> None:
        """A budget that is spent by the last request of all has cut nothing short."""
        ran = paid.run("-k", "finish", *SUBJECT, "--wfbench-max-cost=0.4", agent="")
        assert (ran.ret, paid.sweep()["stop"], paid.sweep()["run_status"]) == (0, None, "complete")
        assert paid.sweep()["spending"]["overshoot"] == 0

    @pytest.mark.parametrize("option", ["--wfbench-max-cost=1", "--wfbench-cell-max-cost=1"])
    def test_without_a_price(self, paid: Suite, option: str) -> None:
        """A budget on a model that has no price is refused before anything is spent, and the remedy named."""
        paid.put("prices.json", "{}")
        ran = paid.run("-k", "finish", *SUBJECT, option, agent="")
        assert (ran.ret, paid.sweeps) == (4, [])
        ran.stderr.fnmatch_lines(["*anthropic/claude-paid has no price*--wfbench-prices*"])

    def test_only_what_is_asked(self, paid: Suite) -> None:
        """Without a budget a model needs no price."""
        paid.put("prices.json", "{}")
        ran = paid.run("-k", "finish", *SUBJECT, "--collect-only", agent="")
        assert ran.ret == 0


class TestParallel:
    def test_one_at_a_time(self, paid: Suite) -> None:
        """One request is under way at any time, whatever the number of workers; the wait is no part of the session."""
        arguments = ("-k", "finish or other", "--wfbench-runs=2", "-n2", "--wfbench-max-parallel-requests=1")
        ran = paid.run(*arguments, *SUBJECT, agent="")
        rows: list[dict[str, Any]] = paid.rows()
        assert [row["outcome"] for row in rows] == ["pass"] * 4, ran.outlines
        under_way = spans(events(paid))
        assert all(before[1] <= after[0] for before, after in pairwise(under_way))
        queued = [row["timings"]["queue"] for row in rows]
        assert max(queued) > 0.2
        waited = paid.sweep()["traffic"]["waited"]
        assert math.isclose(waited, sum(queued), abs_tol=0.05)
        assert "at the gateway, which their times do not count" in report(paid)
