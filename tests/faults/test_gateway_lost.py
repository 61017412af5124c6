"""A gateway, or its LiteLLM, that is killed under a sweep: started again once, and the sweep goes on; never twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Event
from tests.suite import Suite, living, processes_of, until

from .conftest import SUBJECT, await_agents, kill_child, script

pytestmark = pytest.mark.slow

# Longer than any wait in here: only the end of the session can end it.
STUCK = "delay: 60s"


def events(suite: Suite) -> list[Event]:
    return [Event.model_validate_json(line) for line in (suite.results / "usage.jsonl").read_text().splitlines()]


def assert_metered(suite: Suite, row: dict[str, Any]) -> None:
    """What a finished cell's row says is what its script says, and the sum of its events."""
    assert row["usage"]["total_input"] == 180
    assert row["usage"]["output"] == 10
    assert (row["usage_incomplete"], row["requests"], row["failed_requests"]) == (False, 2, 0)
    mine = [event for event in events(suite) if event.cell_id == row["cell_id"]]
    assert [(event.status, event.sweep_id) for event in mine] == [("success", suite.sweep()["sweep_id"])] * 2


class TestGatewayLost:
    def test_started_again_once(self, suite: Suite) -> None:
        """The cell that ran is gateway-lost, the next ones work and are metered; a second loss stops the sweep."""
        script(suite, "works")
        # One works on and asks nobody, the other waits for an answer.
        script(suite, "busy", "run: 2", command="sleep 60")
        script(suite, "stuck", "run: 4", STUCK)
        process = suite.start("-k", "finish", SUBJECT, "--wfbench-arms=baseline", "--wfbench-runs=6", agent="")
        rows = suite.path / "results" / "latest" / "results.jsonl"
        await_agents(process.pid, rows, 1)
        kill_child(process.pid, "gateway.server")
        until(lambda: rows.read_text().count("\n") >= 2, 10, "the row of the cell that ran")
        await_agents(process.pid, rows, 3)
        everything = processes_of(process)
        kill_child(process.pid, "gateway.proxy_main")
        assert process.wait(60) == 1
        until(lambda: not living(everything), 10, "the end of every process")
        found = {row["run"]: row for row in suite.rows()}
        assert {run: (row["outcome"], row["kind"]) for run, row in found.items()} == {
            1: ("pass", None),
            2: ("unusable", "gateway-lost"),
            3: ("pass", None),
            4: ("unusable", "gateway-lost"),
        }
        assert_metered(suite, found[1])
        assert_metered(suite, found[3])
        assert "has ended" in found[2]["reason"] or "does not answer" in found[2]["reason"]
        assert "LiteLLM ended with status -9" in found[4]["reason"]
        for run in (2, 4):
            assert (found[run]["usage_incomplete"], found[run]["usage"]["output"]) == (True, None)
        sweep = suite.sweep()
        assert sweep["stop"]["kind"] == "outage"
        assert "lost again" in sweep["stop"]["cause"]
        assert "lost again" in suite.output()
        assert sweep["run_status"] == "aborted"
        assert [entry["kind"] for entry in sweep["skipped"] if entry["cell_id"]] == ["outage-stop"] * 2
        assert not any(path.exists() for path in suite.places())

    def test_under_workers(self, suite: Suite) -> None:
        """LiteLLM's death ends what every worker ran, counts as one incident, and the workers find the new gateway."""
        script(suite, "works")
        for run in (1, 3):  # the first of either worker
            script(suite, f"stuck{run}", f"run: {run}", STUCK)
        arguments = (SUBJECT, "--wfbench-arms=baseline", "--wfbench-runs=6", "--wfbench-outage-limit=2")
        process = suite.start("-k", "finish", "-n2", "--dist=load", "--maxschedchunk=1", *arguments, agent="")
        rows = suite.path / "results" / "latest" / "results.jsonl"
        await_agents(process.pid, rows, 0, agents=2)
        kill_child(process.pid, "gateway.proxy_main")
        assert process.wait(90) == 1
        assert Counter((row["outcome"], row["kind"]) for row in suite.rows()) == {
            ("unusable", "gateway-lost"): 2,
            ("pass", None): 4,
        }
        for row in suite.rows():
            if row["outcome"] == "pass":
                assert_metered(suite, row)
        assert len(suite.sweep()["open_calls"]) == 2
        assert (suite.sweep()["stop"], suite.sweep()["run_status"]) == (None, "complete")
