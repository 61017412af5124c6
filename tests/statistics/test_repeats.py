"""pass@k and pass^k of arms."""

from __future__ import annotations

from types import ModuleType

import pytest
from scipy import stats

from pytest_wfbench.evidence.store import collect_runs
from pytest_wfbench.statistics.aggregate import summarise
from pytest_wfbench.statistics.repeats import Repeats, repeats_of


def repeats(demo: ModuleType, passed: list[tuple[int, int]], **changes: object) -> tuple[Repeats, ...]:
    """A task for each (passed, runs)."""
    rows = [
        demo.row(f"t{task}", "workflow", run, outcome="pass" if run <= good else "miss", **changes)
        for task, (good, runs) in enumerate(passed)
        for run in range(1, runs + 1)
    ]
    return repeats_of(summarise(collect_runs(rows)))


def test_averaged(demo: ModuleType) -> None:
    """Unbiased per task, with k the least number of runs, then averaged over tasks (worked by hand)."""
    [found] = repeats(demo, [(3, 3), (1, 3), (2, 4), (0, 3)])
    assert (found.tasks, found.k, found.resolved, found.valid) == (4, 3, 6, 13)
    # 2 of 4, three drawn: all four triples hold a pass, none is all passes.
    assert found.any_ == pytest.approx((1 + 1 + 1 + 0) / 4)
    assert found.all_ == pytest.approx((1 + 0 + 0 + 0) / 4)
    assert found.share is not None
    assert found.share.low == pytest.approx(stats.binomtest(6, 13).proportion_ci(method="wilson").low)
    assert (found.any_interval, found.all_interval) == (None, None)


def test_intervals(demo: ModuleType) -> None:
    """With 8 tasks there are intervals over tasks, around the estimates."""
    [found] = repeats(demo, [(3, 3), (1, 3), (2, 3), (0, 3)] * 2)
    assert found.any_interval is not None
    assert found.any_interval.low < found.any_ < found.any_interval.high


def test_once(demo: ModuleType) -> None:
    """Of tasks that ran once, and of reviews, nothing is said."""
    assert repeats(demo, [(1, 1), (3, 3)]) == ()
    assert repeats(demo, [(1, 3)], task_kind="review") == ()
    assert repeats(demo, []) == ()
