"""The review corpus, as `make demo` runs it, with the reviews of a plugin beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pytest_wfbench.evidence.row import Row
from tests.e2e.conftest import Ended
from tests.e2e.test_demo import demo_commands

pytestmark = pytest.mark.slow

CLEAN = {"statement-rows", "more-currencies"}
DEFECTS = {"reminders", "bank-import", "undo", "balance-cache"}


@pytest.fixture(scope="module")
def reviews(once: Callable[..., Ended]) -> Ended:
    """The sharper candidate, and the plugin."""
    return once("reviews", *demo_commands()[1])


@pytest.fixture(scope="module")
def trading(once: Callable[..., Ended]) -> Ended:
    """The candidate that trades a blocker for two findings of little weight."""
    return once("trading", *demo_commands()[2])


def decision(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = json.loads((ended.results / "promotion.json").read_text())["decisions"]
    return found


def score(row: Row, name: str) -> Any:
    assert row.review is not None, row.cell_id
    return row.review[name]


def test_promoted(reviews: Ended) -> None:
    """The candidate is better on one task, equal on all others, and is promoted."""
    assert reviews.status == 0, reviews.output[-3000:]
    assert Counter(row.task for row in reviews.rows) == dict.fromkeys(CLEAN | DEFECTS, 9)
    kept: dict[str, dict[str, set[Any]]] = {}
    for row in reviews.rows:
        kept.setdefault(row.task, {}).setdefault(row.arm, set()).add(json.dumps(row.review, sort_keys=True))
    assert all(len(scores) == 1 for arms in kept.values() for scores in arms.values())
    assert {task for task, arms in kept.items() if arms["review"] != arms["candidate_review"]} == {"bank-import"}
    assert decision(reviews)["decision"] == "promote"
    assert "candidate_review is promoted for mini:replay/demo" in reviews.output


def test_clean_controls(reviews: Ended) -> None:
    """Clean controls are approved, and nothing that is undefined for them is a number."""
    clean = [row for row in reviews.rows if row.task in CLEAN and row.arm != "ce_review"]
    assert all(score(row, "clean_pass") and score(row, "weighted_f1") is None for row in clean)
    assert all(row.outcome == "pass" for row in clean)


def test_severities(reviews: Ended) -> None:
    """Each change with defects has several, and a miss says how many were missed."""
    for row in reviews.rows:
        if row.task in DEFECTS:
            labels = score(row, "true_positives") + score(row, "false_negatives")
            assert labels >= 2
            assert (row.outcome == "pass") is (score(row, "false_negatives") == 0)


def test_kept(trading: Ended) -> None:
    """What finds less of the blockers is kept out, with the task and the recall named."""
    assert trading.status == 0, trading.output[-3000:]
    found = decision(trading)
    assert found["decision"] == "keep_incumbent"
    assert "undo: lowest blocker recall fell from 1 to 0.5." in found["reasons"]
    assert "candidate_review is not promoted for mini:replay/trading: undo: lowest blocker" in trading.output
    assert {row.arm: score(row, "true_positives") for row in trading.rows} == {"review": 2, "candidate_review": 3}


class TestPlugin:
    def test_compared(self, reviews: Ended) -> None:
        """The plugin's reviews are scored beside the others, and known by the plugin's skill."""
        assert reviews.status == 0, reviews.output[-3000:]
        rows = [row for row in reviews.rows if row.arm == "ce_review"]
        assert {row.task for row in rows} == CLEAN | DEFECTS
        for row in rows:
            assert row.skills_expected == row.skills_used == ("second-opinion:review",)
            assert row.plugin is not None
            assert row.plugin.version == "1.2.0"
        assert {row.task for row in rows if not score(row, "verdict_correct")} == {"more-currencies"}

    def test_one_change(self, reviews: Ended) -> None:
        """The arms of a task start from one tree, the overlay aside, and the plugin is no part of the decision."""
        starts: dict[str, dict[str, str | None]] = {}
        for row in reviews.rows:
            starts.setdefault(row.task, {})[row.arm] = row.start_commit
        assert all(found["review"] == found["ce_review"] != found["candidate_review"] for found in starts.values())
        assert "ce_review" not in (decision(reviews)["incumbent_arm"], decision(reviews)["candidate_arm"])

    def test_shown(self, reviews: Ended) -> None:
        """The report has a table of reviews with every task and arm, and nothing of a label."""
        report = (reviews.results / "report.md").read_text()
        table = report.partition("## Reviews")[2].partition("\n## ")[0]
        assert table.count("| ce_review |") == 6
        assert "| more-currencies | ce_review | – | – | 1 | no | no |" in table
        assert "book-moved-away" not in "".join(
            path.read_text(errors="replace") for path in reviews.results.rglob("*") if path.is_file()
        )
