"""The worked cases of both policies, through the whole gate."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.promotion.gate import decide

CASES = json.loads((Path(__file__).parents[1] / "data" / "promotion.json").read_text())


def place(metric: str, value: float | None) -> dict[str, Any]:
    """Where a row holds the value of a metric."""
    if metric == "output_tokens":
        return {"usage": {"total_input": 1, "output": value}}
    return {"cost_usd": value}


def rows_of(case: dict[str, Any], demo: ModuleType) -> list[Row]:
    """The rows of a case."""
    rows, options = [], case["options"]
    named = {} if "model" not in options else {"requested_model": options["model"]}
    for task, sides in case["tasks"].items():
        for arm in ("incumbent", "candidate"):
            for run, entry in enumerate(sides[arm], 1):
                plain = {"outcome": entry["outcome"], "kind": entry.get("kind"), "task_kind": case["policy"], **named}
                if case["policy"] == "review":
                    scores = entry["review"]
                    plain["review"] = scores and {**scores, "clean_control": sides["clean"]}
                else:
                    plain |= {"resolved": entry["resolved"], **place(options.get("metric", "cost_usd"), entry["value"])}
                rows.append(demo.row(task, arm, run, **plain))
    return rows


@pytest.mark.parametrize("case", CASES, ids=[f"{case['policy']}: {case['name']}" for case in CASES])
def test_case(case: dict[str, Any], demo: ModuleType) -> None:
    """Every worked case is decided as the specification says."""
    rows, options = rows_of(case, demo), case["options"]
    asked = {"promotion_metric": options["metric"]} if "metric" in options else {}
    status = "complete" if options.get("complete", True) else "aborted"
    arms = [demo.arm("incumbent"), demo.arm("candidate", (case["policy"],), candidate_of="incumbent")]
    sweep = demo.sweep(rows, arms=arms, options=asked, run_status=status)
    (decision,) = decide(Rows(tuple(rows)), sweep, uncertain=False).decisions
    assert decision.decision == case["decision"], decision.reasons
    assert decision.policy == case["policy"]
    assert all(reason.endswith(".") and any(c.isdigit() for c in reason) for reason in decision.reasons)


def test_both_policies_are_covered() -> None:
    """The file holds cases of both policies and of every decision."""
    assert len({(case["policy"], case["decision"]) for case in CASES}) == 6
