"""How sure decisions are, and what a confidence that is asked for makes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from scipy import stats

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.promotion.model import Decision
from pytest_wfbench.promotion.power import PowerReport, power_of
from pytest_wfbench.statistics.paired import improvement
from pytest_wfbench.statistics.uncertain import MetricUncertainty, Uncertainty


def rows_of(demo: ModuleType, gains: Sequence[float], **changes: Any) -> list[Row]:
    """A task for each gain in percent of cost, three runs each side, all resolved."""
    return [
        demo.row(f"t{index}", arm, run, cost_usd=1.0 if arm == "old" else 1 - gain / 100, **changes)
        for index, gain in enumerate(gains)
        for arm in ("old", "new")
        for run in (1, 2, 3)
    ]


def reviews(demo: ModuleType, pairs: Sequence[tuple[float, float]]) -> list[Row]:
    """A defect task for each pair of weighted F1."""
    return [
        demo.row(f"t{i}", arm, run, task_kind="review",
                 review={"weighted_f1": f1, "false_positives": 0, "verdict_correct": True, "clean_control": False})
        for i, both in enumerate(pairs)
        for arm, f1 in zip(("old", "new"), both, strict=True)
        for run in (1, 2, 3)
    ]  # fmt: skip


def gate(demo: ModuleType, rows: list[Row], of: list[Row] | None = None, **options: Any) -> Decision:
    kinds = (rows[0].task_kind,)
    arms = [demo.arm("old", kinds), demo.arm("new", kinds, candidate_of="old")]
    (decision,) = decide(Rows(tuple(rows)), demo.sweep(of or rows, arms=arms, options=options)).decisions
    return decision


def sure(decision: Decision) -> Uncertainty:
    assert decision.uncertainty is not None
    return decision.uncertainty


def asked(decision: Decision) -> MetricUncertainty:
    return sure(decision).metrics[0]


def noisy(demo: ModuleType, least: float, most: float) -> list[Row]:
    """Two arms of one cost: four tasks, three runs, each between the least and the most; the same every time."""
    chance = random.Random(5)
    return [
        demo.row(f"t{i}", arm, run, cost_usd=chance.uniform(least, most))
        for i in range(4) for arm in ("old", "new") for run in (1, 2, 3)
    ]  # fmt: skip


class TestReported:
    def test_always(self, demo: ModuleType) -> None:
        """Every decision has all four metrics, the asked one first, whatever it is."""
        rows = rows_of(demo, [10, 12])
        for changes in ({}, {"outcome": "unusable"}, {"cost_usd": None}):
            spoilt = [rows[0].model_copy(update=changes), *rows[1:]]
            found = sure(gate(demo, spoilt, promotion_metric="num_turns"))
            assert [entry.metric for entry in found.metrics] == ["num_turns", "cost_usd", "output_tokens", "duration_s"]
            assert (found.level, found.binding) == (0.95, False)

    def test_few_tasks(self, demo: ModuleType) -> None:
        """With fewer than 8 tasks there is no interval, and that is said; the permutation test decides the word."""
        found = asked(gate(demo, rows_of(demo, [10, 12, 11, 9, 13, 14, 10])))
        assert (found.word, found.interval, found.p) == ("IMPROVEMENT", None, pytest.approx(2 / 128))
        assert found.remark is not None
        assert "8 are needed" in found.remark
        few = asked(gate(demo, rows_of(demo, [10, 12, 11])))
        assert (few.word, few.detectable) == ("INCONCLUSIVE", None)

    def test_interval(self, demo: ModuleType) -> None:
        """With 8 the interval is scipy's own BCa one of the same differences, and the others are Holm-adjusted."""
        gains = [3.0, 9.0, 12.0, 5.0, 8.0, -2.0, 7.0, 10.0, 4.0]
        decision = gate(demo, rows_of(demo, gains))
        found = asked(decision)
        wanted = [improvement(1.0, 1 - gain / 100) or 0.0 for gain in gains]
        assert found.mean == pytest.approx(sum(wanted) / 9)
        assert found.interval is not None
        own = stats.bootstrap((wanted,), lambda x, axis: x.mean(axis=axis), rng=1, n_resamples=9999).confidence_interval
        assert (found.interval.low, found.interval.high) == (
            pytest.approx(own.low, abs=0.4),
            pytest.approx(own.high, abs=0.4),
        )
        assert found.word == "IMPROVEMENT"
        assert found.p is not None
        assert found.p_holm == pytest.approx(min(1.0, 4 * found.p))

    @pytest.mark.parametrize(
        ("gains", "word"),
        [([1, -1, 2, -2, 1, -1, 0, 0], "EQUIVALENT"), ([-9, -8, -12, -10, -7, -11, -9, -10], "REGRESSION"),
         ([30, -28, 25, -31, 12, -9, 22, -20], "INCONCLUSIVE"), ([0] * 8, "EQUIVALENT")],
    )  # fmt: skip
    def test_words(self, demo: ModuleType, gains: list[float], word: str) -> None:
        """Each of the four words where it belongs."""
        assert asked(gate(demo, rows_of(demo, gains))).word == word

    def test_reviews(self, demo: ModuleType) -> None:
        """Reviews are told in points of weighted F1."""
        found = asked(gate(demo, reviews(demo, [(0.5, 0.6), (0.4, 0.4)])))
        assert (found.metric, found.unit, found.mean) == ("weighted_f1", "weighted_f1", pytest.approx(0.05))

    def test_order(self, demo: ModuleType) -> None:
        """The order of rows, and which repeat is which, changes nothing of it."""
        rows = [
            demo.row(f"t{i}", arm, run, cost_usd=1 + 0.1 * run * (i + 1))
            for i in range(3) for arm in ("old", "new") for run in (1, 2, 3)
        ]  # fmt: skip
        turned = [row.model_copy(update={"run": 4 - row.run, "cell_id": f"{row.cell_id}x"}) for row in rows]
        random.Random(3).shuffle(turned)
        assert sure(gate(demo, turned)) == sure(gate(demo, rows))


class TestFalsePromotion:
    def test_noise(self, demo: ModuleType) -> None:
        """Noisy runs promote an identical candidate now and then; the rate is that of the simulation, and seeded."""
        rows = noisy(demo, 0.7, 1.3)
        found = sure(gate(demo, rows)).false_promotion
        assert found.rate is not None
        assert 0.02 < found.rate < 0.5
        assert found == sure(gate(demo, rows)).false_promotion
        report = power_of(
            Rows(tuple(rows)), demo.sweep(rows, arms=[demo.arm("old"), demo.arm("new", candidate_of="old")]), 500
        )
        assert report.powers[0].false_promotion.rate == found.rate

    def test_alike(self, demo: ModuleType) -> None:
        """Where all runs are alike none is promoted falsely."""
        found = sure(gate(demo, rows_of(demo, [10, 10]))).false_promotion
        assert (found.rate, found.promoted, found.draws) == (0.0, 0, 500)

    def test_many(self, demo: ModuleType) -> None:
        """Many rows are not simulated unasked; what to run is said."""
        found = sure(gate(demo, rows_of(demo, [10] * 40))).false_promotion
        assert (found.rate, found.remark) == (None, "240 runs are many to simulate: run `wfbench power`")


class TestBinding:
    def test_few_tasks(self, demo: ModuleType) -> None:
        """Where the number of tasks cannot reach the confidence it is insufficient, and how many could is said."""
        rows = rows_of(demo, [10, 12, 11])
        assert gate(demo, rows).decision == "promote"
        decision = gate(demo, rows, promotion_confidence=0.95)
        assert decision.decision == "insufficient_evidence"
        assert "p they allow is 0.125, at most 0.05 is needed; 5 tasks could." in decision.reasons[0]
        assert sure(decision).binding

    def test_reached(self, demo: ModuleType) -> None:
        """Five tasks that all say the same reach 0.95 by the permutation test."""
        decision = gate(demo, rows_of(demo, [10, 12, 11, 9, 13]), promotion_confidence=0.95)
        assert (decision.decision, "p = 0.03125" in decision.reasons[1]) == ("promote", True)

    def test_not_reached(self, demo: ModuleType) -> None:
        """A median that is good enough is kept out where the tasks do not agree."""
        rows = rows_of(demo, [6, 7, 8, 6, -19])
        assert gate(demo, rows).decision == "promote"
        decision = gate(demo, rows, promotion_confidence=0.95)
        assert (decision.decision, "at most 0.05 is needed" in decision.reasons[0]) == ("keep_incumbent", True)

    @pytest.mark.parametrize(("last", "decided"), [(7, "promote"), (-19.9, "keep_incumbent")])
    def test_bound(self, demo: ModuleType, last: float, decided: str) -> None:
        """With 8 tasks the one-sided lower bound of the mean must be above 0."""
        decision = gate(
            demo, rows_of(demo, [5, 6, 5.5, 5, 5, 6, 9 if last > 0 else last, last]), promotion_confidence=0.95
        )
        first = decided == "keep_incumbent"
        assert (decision.decision, "lower bound" in decision.reasons[0]) == (decided, first)
        assert "lower bound" in decision.reasons[not first]

    def test_resolving(self, demo: ModuleType) -> None:
        """Two more resolved runs promote only if chance does not explain them as well."""
        rows = rows_of(demo, [0, 0, 0, 0, 0])
        lost = [
            row.model_copy(update={"outcome": "miss", "kind": "oracle-failed"})
            if row.arm == "old" and row.run == 1 and row.task in ("t0", "t1")
            else row
            for row in rows
        ]
        assert gate(demo, lost).decision == "promote"
        decision = gate(demo, lost, promotion_confidence=0.95)
        assert decision.decision == "keep_incumbent"
        assert "resolved runs over 5 tasks gives p = 0.25" in decision.reasons[0]

    def test_what_decided_is_first(self, demo: ModuleType) -> None:
        """Where one way to promotion says keep, and the other has too few tasks, the latter's reason comes first."""
        miss = {"outcome": "miss", "kind": "oracle-failed"}
        rows = [
            row.model_copy(update=miss) if row.task in ("t0", "t1") and (row.arm == "old" or row.run > 1) else row
            for row in rows_of(demo, [10, 10, 10, 10, 10])
        ]
        assert gate(demo, rows).decision == "promote"
        decision = gate(demo, rows, promotion_confidence=0.95)
        assert decision.decision == "insufficient_evidence"
        assert decision.reasons[0].startswith("3 tasks cannot show the mean cost_usd improvement")
        assert "resolved runs over 5 tasks gives p = 0.25" in decision.reasons[2]

    def test_kept_stays_kept(self, demo: ModuleType) -> None:
        """Few tasks make no evidence of what is kept for other reasons."""
        assert gate(demo, rows_of(demo, [1, 1]), promotion_confidence=0.95).decision == "keep_incumbent"

    def test_reviews(self, demo: ModuleType) -> None:
        """Reviews are bound likewise, and their least gain can be set."""
        five = [(0.5, 0.6), (0.4, 0.5), (0.3, 0.4), (0.6, 0.7), (0.2, 0.3)]
        assert gate(demo, reviews(demo, five), promotion_confidence=0.95).decision == "promote"
        assert gate(demo, reviews(demo, five[:4]), promotion_confidence=0.95).decision == "insufficient_evidence"
        assert gate(demo, reviews(demo, five), promotion_min_f1_gain=0.2).decision == "keep_incumbent"


class TestPower:
    def report(self, demo: ModuleType, rows: list[Row]) -> PowerReport:
        arms = [demo.arm("old"), demo.arm("new", candidate_of="old")]
        return power_of(Rows(tuple(rows)), demo.sweep(rows, arms=arms), 200)

    def test_curve(self, demo: ModuleType) -> None:
        """A candidate that is truly cheaper is promoted the more often, the cheaper it is."""
        rows = noisy(demo, 0.8, 1.2)
        report = self.report(demo, rows)
        [power] = report.powers
        rates = [power.false_promotion.rate, *(rate.rate for rate in power.curve)]
        assert rates[0] < 0.5 < rates[-1]
        assert all(after >= before - 0.05 for before, after in pairwise(rates))
        assert report.missing == ("No review task has a valid run here, so nothing is said of that policy.",)
        assert report == self.report(demo, rows[::-1])
        bounds = stats.binomtest(power.curve[0].promoted, 200).proportion_ci(method="wilson")
        assert power.curve[0].interval.low == pytest.approx(bounds.low)

    def test_reviews(self, demo: ModuleType) -> None:
        """Reviews of an identical candidate that are all alike are never promoted; better ones always."""
        [power] = self.report(demo, reviews(demo, [(0.5, 0.5), (0.4, 0.4)])).powers
        assert (power.policy, power.false_promotion.rate, power.curve[0].rate) == ("review", 0.0, 1.0)

    def test_cannot_rule(self, demo: ModuleType) -> None:
        """Where the gate cannot rule that is said, not shown as a perfect record."""
        rows = [row for row in rows_of(demo, [1]) if row.run == 1]
        assert self.report(demo, rows).powers[0].ruled == 0
        assert sure(gate(demo, rows)).false_promotion.rate is None
