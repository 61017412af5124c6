"""Pairs of arms on the same tasks."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.evidence.store import collect_runs
from pytest_wfbench.statistics.aggregate import cost_usd
from pytest_wfbench.statistics.paired import improvement, median_improvement, pair_up

SUBJECT = "mini:anthropic/claude-sonnet-4-5-20250929"


class TestImprovement:
    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [(100, 95, 5.0), (100, 120, -20.0), (0, 0, None), (0, 5, None), (None, 5, None), (5, None, None)],
    )
    def test_percent(self, before: float | None, after: float | None, expected: float | None) -> None:
        """Less is an improvement; against nothing or the unknown there is none."""
        assert improvement(before, after) == expected

    @given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
    def test_scale(self, before: float, after: float, scale: float) -> None:
        """The unit of the metric does not matter."""
        found, scaled = improvement(before, after), improvement(before * scale, after * scale)
        assert found is not None
        assert scaled == pytest.approx(found, rel=1e-6, abs=1e-6)


class TestPairs:
    def test_a_missing_side_is_empty(self, demo: ModuleType) -> None:
        """A task that an arm lacks is paired with nothing, not left out."""
        runs = collect_runs([demo.row("a", "x"), demo.row("b", "y")])
        pairs = pair_up([("b", 0), ("a", 0), ("a", 0)], runs, "x", "y", SUBJECT)
        assert [(p.name, len(p.incumbent.runs), len(p.candidate.runs)) for p in pairs] == [("a", 1, 0), ("b", 0, 1)]

    def test_other_subjects_stay_out(self, demo: ModuleType) -> None:
        """Only rows of the subject are paired."""
        runs = collect_runs([demo.row("a", "x"), demo.row("a", "x", subject="other:m")])
        (pair,) = pair_up([("a", 0)], runs, "x", "y", SUBJECT)
        assert len(pair.incumbent.runs) == 1

    def test_median_over_tasks(self, demo: ModuleType) -> None:
        """The improvement over tasks is the median of theirs, and unknown where one is."""
        costs = {"a": (1.0, 0.9), "b": (2.0, 1.0), "c": (1.0, None)}
        rows = [demo.row(t, arm, cost_usd=c) for t, both in costs.items() for arm, c in zip("xy", both, strict=True)]
        pairs = pair_up([(t, 0) for t in costs], collect_runs(rows), "x", "y", SUBJECT)
        assert median_improvement(pairs[:2], cost_usd) == pytest.approx(30.0)
        assert median_improvement(pairs, cost_usd) is None
        assert median_improvement((), cost_usd) is None
