"""The verdict of a sweep."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.verdict import Verdict, judge

STOP = {
    kind: {"stop": {"kind": kind, "cause": "why"}} for kind in ("preflight", "outage", "budget", "interrupted", "other")
}


@pytest.fixture
def verdict(demo: ModuleType) -> Any:
    def of(*outcomes: str, planned: int | None = None, kinds: dict[int, str] | None = None, **changes: Any) -> Verdict:
        rows = [
            demo.row(run=n, outcome=o, **({"kind": kinds[n]} if kinds and n in kinds else {}))
            for n, o in enumerate(outcomes, 1)
        ]
        cells = rows + [demo.row(run=n) for n in range(len(rows) + 1, (planned or 0) + 1)]
        return judge(Rows(tuple(rows)), demo.sweep(cells, **changes))

    return of


class TestWords:
    @pytest.mark.parametrize(
        ("outcomes", "changes", "word", "status"),
        [
            (("pass", "pass"), {}, "PASS", 0),
            (("pass", "miss"), {}, "PASS WITH MISSES", 0),
            (("pass", "miss"), {"options": {"min_pass": 0.5}}, "PASS WITH MISSES", 0),
            (("pass", "miss"), {"options": {"min_pass": 0.51}}, "BELOW FLOOR", 1),
            (("pass", "unusable"), {}, "BROKEN", 1),
            (("pass", "unusable"), {"options": {"max_unusable": 1}}, "PASS", 0),
            (("unusable",), {"options": {"max_unusable": 1}}, "BROKEN", 1),
            (("pass",), STOP["preflight"], "BROKEN", 1),
            (("pass",), STOP["outage"], "BROKEN", 1),
            (("pass",), STOP["budget"], "INCOMPLETE", 1),
            (("pass",), STOP["interrupted"], "INCOMPLETE", 2),
            (("pass",), STOP["other"], "INCOMPLETE", 1),
            (("pass", "unusable"), STOP["interrupted"], "BROKEN", 1),
            (("miss",), {"options": {"min_pass": 1.0}, **STOP["budget"]}, "INCOMPLETE", 1),
            (("pass",), {"run_status": "running"}, "INCOMPLETE", 2),
            (("pass",), {"run_status": "aborted"}, "INCOMPLETE", 1),
            (("pass",), {"missing_shards": ["2/3"]}, "INCOMPLETE", 1),
            ((), {"options": {"min_pass": 0.5}}, "BELOW FLOOR", 1),
        ],
    )
    def test_first_that_applies(self, verdict: Any, outcomes: Any, changes: Any, word: str, status: int) -> None:
        """One word, the first that applies, and its exit status."""
        found = verdict(*outcomes, **changes)
        assert (found.word, found.exit_status) == (word, status)

    def test_a_cell_without_a_row(self, verdict: Any) -> None:
        """A planned cell that has neither a row nor a reason to be skipped makes the sweep incomplete."""
        found = verdict("pass", planned=3)
        assert (found.word, found.exit_status, found.counts.absent) == ("INCOMPLETE", 1, 2)
        assert found.cause == "the sweep ended early; 2 of 3 cells without a result"

    def test_cells_that_a_stop_kept_from_being_run(self, verdict: Any) -> None:
        """Cells that the budget skipped are without a result; one that is expensive is none of the sweep's."""
        skips = [("budget-stop", "b"), ("outage-stop", "c"), ("expensive", "d")]
        skipped = [{"kind": kind, "task": "a", "cell_id": cell, "reason": "why"} for kind, cell in skips]
        assert verdict("pass", skipped=skipped, **STOP["budget"]).cause == "why; 2 of 3 cells without a result"

    @pytest.mark.parametrize("kind", ["interrupted", "budget"])
    def test_cut_cells_are_not_broken(self, verdict: Any, kind: str) -> None:
        """Cells that the interruption or the sweep's budget cut short do not make the pipeline broken."""
        found = verdict("pass", "unusable", kinds={2: "cancelled"}, **STOP[kind])
        assert found.word == "INCOMPLETE"

    def test_cancelled_without_a_stop_is_broken(self, verdict: Any) -> None:
        """A cancelled cell that no stop explains is unusable like any other."""
        assert verdict("pass", "unusable", kinds={2: "cancelled"}).word == "BROKEN"

    def test_awkward_floor(self, verdict: Any) -> None:
        """A share that is exactly the floor is not below it, whatever its binary fraction."""
        assert verdict("pass", "pass", "miss", options={"min_pass": 2 / 3 + 1e-12}).word == "PASS WITH MISSES"


class TestNumbers:
    def test_rates_are_over_graded_cells(self, verdict: Any) -> None:
        """The pass rate leaves unusable cells out, and the graded share says how many there were."""
        found = verdict("pass", "miss", "unusable", "unusable", options={"max_unusable": 2})
        assert (found.pass_rate, found.graded_share, found.counts.graded) == (0.5, 0.5, 2)

    def test_cause_counts_kinds(self, verdict: Any) -> None:
        """The cause of BROKEN counts the kinds."""
        found = verdict("unusable", "unusable", "pass", kinds={2: "judge-error"})
        assert found.cause == "2 of 3 cells unusable, 0 tolerated: 1 judge-error, 1 provider-error"

    def test_reviews_have_no_floor(self, demo: ModuleType) -> None:
        """A floor speaks of implementation and question cells only."""
        rows = [demo.row(outcome="miss", task_kind="review")]
        found = judge(Rows(tuple(rows)), demo.sweep(rows, options={"min_pass": 1.0}))
        assert (found.word, found.pass_rate) == ("PASS WITH MISSES", None)

    def test_newest_attempt(self, demo: ModuleType) -> None:
        """A retried cell counts once, as its newest attempt."""
        rows = [demo.row(outcome="unusable"), demo.row(attempt=2)]
        found = judge(Rows(tuple(rows)), demo.sweep(rows))
        assert (found.word, found.counts.planned) == ("PASS", 1)

    def test_other_shards(self, demo: ModuleType) -> None:
        """Cells of other shards are not this one's to report."""
        rows = [demo.row()]
        skipped = [{"kind": "shard", "task": "b", "cell_id": "b.v0", "reason": "shard 2/2"}]
        assert judge(Rows(tuple(rows)), demo.sweep(rows, skipped=skipped)).counts.planned == 1
