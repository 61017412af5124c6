"""Faults of a provider under real agents: each becomes the right row, and the next cell notices nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.gateway.roads import REPEATS
from tests.e2e.conftest import require_agent
from tests.gateway.rogue import rogue_provider
from tests.suite import CASES, Suite

from .conftest import SUBJECT, script

pytestmark = pytest.mark.slow

ROGUE = "--wfbench-subject=mini:anthropic/rogue"
CLAUDE = "--wfbench-subject=claude-code:replay/faults"
ERROR = "error: {{status: {}, type: api_error, message: scripted{}}}"
# What the script of each task does to its first turn.
SCRIPTED = {
    "once-500": ERROR.format(500, ", times: 1"),
    "always-529": ERROR.format(529, ""),
    "always-429": ERROR.format(429, ", retry_after: 1"),
    "broken-off": "cut: true",
    "well": "",
}
CLAUDES = {"claude-429": ERROR.format(429, ", retry_after: 1, times: 1"), "claude-cut": "cut: true"}
ROGUES = ("garbage", "reset-midway", "hang", "drip", "none")
UNUSABLE = ("unusable", "provider-error")
# outcome and kind, requests that failed, whether the usage is unknown
EXPECTED = {
    "once-500": (("pass", None), 1, False),
    "always-529": (UNUSABLE, 2, False),
    # The gateway waits in the agent's place, so many times.
    "always-429": (UNUSABLE, 1 + REPEATS, False),
    "broken-off": (UNUSABLE, 2, True),
    "well": (("pass", None), 0, False),
    "claude-429": (("pass", None), 1, False),
    "claude-cut": (UNUSABLE, None, True),
    "garbage": (UNUSABLE, 2, True),
    "reset-midway": (UNUSABLE, 2, True),
    "hang": (UNUSABLE, 0, True),
    "drip": (UNUSABLE, 0, True),
    "none": (("miss", "no-work-produced"), 0, False),
}
SECONDS = {"hang": 3, "drip": 3, "claude-cut": 15}


def cases() -> str:
    tasks = [
        {
            "id": name,
            "prompt": f"FAULT {name}. Make a.txt say done.",
            "timeout": {"session": f"{SECONDS.get(name, 40)}s"},
        }
        for name in EXPECTED
    ]
    return f"{CASES.partition('tasks:')[0]}tasks: {json.dumps(tasks)}\n"


@pytest.fixture
def faulty(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    """A suite with one task a fault, and a provider that has some of them."""
    suite.put("cases/tiny.cases.yaml", cases())
    for name, fault in (SCRIPTED | CLAUDES).items():
        script(suite, name, f"task: {name}", fault, tool="Bash" if name in CLAUDES else "bash")
    script(suite, "others")
    with rogue_provider() as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-nobody-0123456789")
        yield suite


class TestProviderFaults:
    def test_rows(self, faulty: Suite) -> None:
        """Recovered faults are graded, others are the provider's; what is unknown stays so; nothing hangs."""
        require_agent("claude-code")
        chosen = {"mini and replay": SCRIPTED, "rogue": ROGUES, "claude-code": CLAUDES}
        wanted = " or ".join(f"({subject} and ({' or '.join(names)}))" for subject, names in chosen.items())
        arguments = (SUBJECT, ROGUE, CLAUDE, "--wfbench-arms=baseline", "--wfbench-outage-limit=0")
        ran = faulty.run("-k", wanted, "-n3", *arguments, agent="")
        found = {row["task"]: row for row in faulty.rows()}
        assert set(found) == set(EXPECTED), ran.outlines
        events = [Event.model_validate_json(line) for line in (faulty.results / "usage.jsonl").read_text().splitlines()]
        told = {name: _told(row, events, EXPECTED[name][1]) for name, row in found.items()}
        assert told == EXPECTED
        assert found["claude-429"]["usage"]["output"] == found["once-500"]["usage"]["output"] == 10
        assert found["broken-off"]["usage"]["output"] is None
        assert all(found[name]["timings"]["session"] < SECONDS.get(name, 30) + 6 for name in found)
        assert ran.ret == 1


def _told(row: dict[str, Any], events: list[Event], failures: int | None) -> tuple[Any, int | None, bool]:
    """What row and events say, once they agree."""
    mine = [event for event in events if event.cell_id == row["cell_id"] and event.kind == "generate"]
    failed = [event for event in mine if event.status in ("failure", "cut")]
    assert (row["requests"], row["failed_requests"]) == (len(mine), len(failed)), row["task"]
    assert all(event.error_class for event in failed)
    assert all("output_tokens" not in (event.native_usage or {}) for event in failed)
    counted = None if failures is None else len(failed)
    return (row["outcome"], row["kind"]), counted, row["usage_incomplete"]
