"""Policy A: review tasks, quality first."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.promotion.model import Decision

DEFECT = {"weighted_f1": 0.6, "blocker_recall": 1.0, "false_positives": 1, "verdict_correct": True, "clean_pass": False,
          "clean_control": False}  # fmt: skip
CLEAN = {"weighted_f1": None, "blocker_recall": None, "false_positives": 0, "verdict_correct": True, "clean_pass": True,
         "clean_control": True}  # fmt: skip
BETTER = DEFECT | {"weighted_f1": 0.8}
Reviews = list[dict[str, Any]]
SCORES = st.fixed_dictionaries(
    {
        "weighted_f1": st.sampled_from([0.5, 0.6, 0.605, 0.61, 0.9]),
        "blocker_recall": st.sampled_from([0.5, 1.0, 1.0]),
        "false_positives": st.integers(0, 2),
        "verdict_correct": st.sampled_from([True] * 9 + [False]),
        "clean_pass": st.just(False),
        "clean_control": st.just(False),
    }
)
THREE = st.lists(SCORES, min_size=3, max_size=3)
PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def gate(demo: ModuleType, **tasks: tuple[Reviews, Reviews]) -> Decision:
    """Decide over tasks, each given as the reviews of the incumbent and of the candidate."""
    rows: list[Row] = [
        demo.row(task, arm, run, task_kind="review", outcome="miss", kind="review-imperfect", review=review)
        for task, sides in tasks.items()
        for arm, reviews in zip(("old", "new"), sides, strict=True)
        for run, review in enumerate(reviews, 1)
    ]
    arms = [demo.arm("old", ("review",)), demo.arm("new", ("review",), candidate_of="old")]
    (decision,) = decide(Rows(tuple(rows)), demo.sweep(rows, arms=arms), uncertain=False).decisions
    return decision


def of(demo: ModuleType, *candidate: dict[str, Any], incumbent: dict[str, Any] = DEFECT, **more: Any) -> Decision:
    return gate(demo, a=([incumbent] * 3, [*candidate]), **more)


class TestRules:
    def test_better(self, demo: ModuleType) -> None:
        """The reviews that the other tests spoil would promote."""
        decision = of(demo, BETTER, BETTER, BETTER, c=([CLEAN] * 3, [CLEAN] * 3))
        assert (decision.decision, decision.metric) == ("promote", "weighted_f1")
        assert decision.reasons == ("Best gain in median weighted F1 is 0.2 (a), at least 0.01 was needed.",)
        assert decision.tasks[0].gain == pytest.approx(0.2)

    @pytest.mark.parametrize("field", ["weighted_f1", "blocker_recall", "false_positives", "verdict_correct"])
    def test_needed_and_unknown(self, demo: ModuleType, field: str) -> None:
        """A needed score that one run of either arm leaves unknown is insufficient."""
        gap = BETTER | {field: None}
        expected = f"a: {field} is unknown in 1 of 6 valid runs."
        assert of(demo, BETTER, BETTER, gap).reasons == (expected,)
        sides = ([DEFECT, DEFECT, DEFECT | {field: None}], [BETTER] * 3)
        assert gate(demo, a=sides).reasons == (expected,)

    def test_clean_pass_is_needed(self, demo: ModuleType) -> None:
        """On a clean control clean_pass is needed, and the undefined F1 is not."""
        gap = [CLEAN, CLEAN, CLEAN | {"clean_pass": None}]
        decision = of(demo, BETTER, BETTER, BETTER, c=([CLEAN] * 3, gap))
        assert decision.reasons == ("c: clean_pass is unknown in 1 of 6 valid runs.",)

    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            (None, "a: clean_control is unknown in 1 of 6 valid runs."),
            (True, "a: 6 valid runs do not agree on whether it is a clean control."),
        ],
    )
    def test_control_or_not(self, demo: ModuleType, said: bool | None, reason: str) -> None:
        """Rows that do not say, or contradict each other on, whether a task is a clean control are insufficient."""
        decision = of(demo, BETTER, BETTER, BETTER | {"clean_control": said})
        assert (decision.decision, decision.reasons) == ("insufficient_evidence", (reason,))

    def test_one_run_without_scores(self, demo: ModuleType) -> None:
        """Of a clean control that one run said nothing about, F1 is not asked for."""
        decision = of(demo, BETTER, BETTER, BETTER, c=([CLEAN] * 3, [CLEAN, CLEAN, {}]))
        assert decision.decision == "insufficient_evidence"
        told = ("clean_control", "false_positives", "verdict_correct", "clean_pass")
        assert decision.reasons == tuple(f"c: {name} is unknown in 1 of 6 valid runs." for name in told)

    def test_no_review_at_all(self, demo: ModuleType) -> None:
        """Rows without scores are insufficient."""
        assert gate(demo, a=([{}] * 3, [{}] * 3)).decision == "insufficient_evidence"

    def test_false_positives_of_a_clean_control(self, demo: ModuleType) -> None:
        """More false positives at the median of a clean control keep the incumbent, though it never passed clean."""
        noisy = CLEAN | {"clean_pass": False, "false_positives": 1}
        noisier = noisy | {"false_positives": 2}
        decision = of(demo, BETTER, BETTER, BETTER, c=([noisy] * 3, [noisy, noisier, noisier]))
        expected = "c: median false positives on a clean control rose from 1 to 2."
        assert (decision.decision, decision.reasons) == ("keep_incumbent", (expected,))

    def test_a_clean_pass_lost(self, demo: ModuleType) -> None:
        """One clean pass lost keeps the incumbent, though the median stays."""
        lost = CLEAN | {"clean_pass": False, "false_positives": 1}
        decision = of(demo, BETTER, BETTER, BETTER, c=([CLEAN] * 3, [CLEAN, CLEAN, lost]))
        expected = "c: 1 of 3 runs lost the clean pass, 0 are allowed."
        assert (decision.decision, decision.reasons) == ("keep_incumbent", (expected,))

    def test_cost_buys_nothing(self, demo: ModuleType) -> None:
        """Equal quality at whatever cost keeps the incumbent."""
        assert of(demo, DEFECT, DEFECT, DEFECT).decision == "keep_incumbent"


class TestProperties:
    @PROPERTY
    @example(old=[DEFECT | {"blocker_recall": 0.5}] * 3, new=[BETTER] * 3, clean=True)
    @example(old=[DEFECT] * 3, new=[BETTER, BETTER, BETTER | {"verdict_correct": False}], clean=True)
    @example(old=[DEFECT] * 3, new=[DEFECT] * 3, clean=True)
    @given(old=THREE, new=THREE, clean=st.booleans())
    def test_worse(self, demo: ModuleType, old: Reviews, new: Reviews, clean: bool) -> None:
        """Making any score of the candidate worse never turns a decision into a promotion."""
        control = {"c": ([CLEAN] * 3, [CLEAN, CLEAN, CLEAN | {"false_positives": 1, "clean_pass": clean}])}
        if gate(demo, a=(old, new), **control).decision == "promote":
            return
        for run, review in enumerate(new):
            for field in ("weighted_f1", "blocker_recall", "verdict_correct"):
                worse = [*new[:run], review | {field: False if field == "verdict_correct" else 0.0}, *new[run + 1 :]]
                assert gate(demo, a=(old, worse), **control).decision != "promote", (run, field)

    @PROPERTY
    @given(old=THREE, new=THREE, seed=st.permutations([0, 1, 2]))
    def test_order_of_runs(self, demo: ModuleType, old: Reviews, new: Reviews, seed: list[int]) -> None:
        """The order of repeats changes no decision."""
        assert gate(demo, a=(old, new)).decision == gate(demo, a=(old, [new[n] for n in seed])).decision

    @PROPERTY
    @given(same=st.lists(THREE, min_size=1, max_size=3))
    def test_identical(self, demo: ModuleType, same: list[Reviews]) -> None:
        """An identical candidate is never promoted."""
        assert gate(demo, **{f"t{n}": (side, side) for n, side in enumerate(same)}).decision != "promote"
