"""Rows to summaries."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.evidence.store import collect_runs
from pytest_wfbench.statistics.aggregate import Summary, summarise, total


def one(rows: list[Any]) -> Summary:
    (summary,) = summarise(collect_runs(rows))
    return summary


class TestMedians:
    def test_of_valid_runs(self, demo: ModuleType) -> None:
        """Medians are over graded runs: an unusable one counts as an error and nowhere else."""
        rows = [demo.row(run=n, cost_usd=c) for n, c in ((1, 1.0), (2, 3.0))]
        rows.append(demo.row(run=3, outcome="unusable", cost_usd=None, usage_incomplete=True))
        found = one(rows)
        assert (found.cost_usd, found.valid, found.unusable, found.resolved) == (2.0, 2, 1, 2)

    @pytest.mark.parametrize(
        ("field", "gap"),
        [
            ("cost_usd", {"cost_usd": None}),
            ("tokens_in", {"usage": {"output": 1}}),
            ("tokens_out", {"usage": {"total_input": 1}}),
            ("tokens", {"usage": {"total_input": 1}}),
            ("turns", {"num_turns": None}),
            ("wall", {"timings": {}}),
            ("churn", {"churn": None}),
            ("tools", {"tool_calls": None}),
            ("tokens_in", {"usage_incomplete": True}),
            ("cost_usd", {"usage_incomplete": True}),
        ],
    )
    def test_unknown_in_one_run(self, demo: ModuleType, field: str, gap: dict[str, Any]) -> None:
        """A number that one valid run leaves unknown has no median, and is never taken for 0."""
        churn = {"files": 1, "insertions": 2, "deletions": 1}
        rows = [demo.row(run=1, churn=churn), demo.row(run=2, **({"churn": churn} | gap))]
        assert getattr(one(rows[:1]), field) is not None
        assert getattr(one(rows), field) is None

    def test_all_attempts_are_paid(self, demo: ModuleType) -> None:
        """A run's cost is that of all its attempts; its tokens and turns are those of the one that counts."""
        rows = [demo.row(attempt=1, outcome="unusable", cost_usd=0.25), demo.row(attempt=2, cost_usd=1.0)]
        found = one(rows)
        assert (found.cost_usd, found.tokens_in, found.valid, found.unusable) == (1.25, 10000, 1, 0)

    def test_a_lost_attempt_of_unknown_cost(self, demo: ModuleType) -> None:
        """An attempt whose cost is unknown makes the run's cost unknown."""
        rows = [demo.row(attempt=1, outcome="unusable", cost_usd=None), demo.row(attempt=2, cost_usd=1.0)]
        assert one(rows).cost_usd is None

    def test_churn_is_lines(self, demo: ModuleType) -> None:
        """Churn is lines inserted and deleted."""
        assert one([demo.row(churn={"files": 9, "insertions": 14, "deletions": 3})]).churn == 17


class TestGroups:
    def test_one_per_key(self, demo: ModuleType) -> None:
        """There is one summary per task, variation, arm and subject."""
        rows = [demo.row(), demo.row(variation=1), demo.row(arm="b"), demo.row(task="z"), demo.row(subject="x:y")]
        assert [s.key.unit for s in summarise(collect_runs(rows))] == ["a", "a", "a", "a~v1", "z"]

    def test_order_of_rows(self, demo: ModuleType) -> None:
        """The order of rows changes nothing."""
        rows = demo.rows()
        expected = summarise(collect_runs(rows))
        for seed in range(5):
            random.Random(seed).shuffle(rows)
            assert summarise(collect_runs(rows)) == expected

    def test_models(self, demo: ModuleType) -> None:
        """The models that answered are those of all valid runs."""
        rows = [demo.row(run=1, models_answered=["b"]), demo.row(run=2, models_answered=["a", "b"])]
        assert one(rows).models == ("a", "b")


class TestTotal:
    def test_counts_stay_counts(self) -> None:
        """A sum of whole numbers is whole, one with an unknown is unknown, and one of nothing is unknown."""
        assert (repr(total([1, 2])), total([1, None]), total([])) == ("3", None, None)

    def test_order_of_floats(self) -> None:
        """A sum does not depend on the order of its terms."""
        values = [0.1, 0.2, 0.3, 1e16, -1e16]
        assert total(values) == total(values[::-1])
