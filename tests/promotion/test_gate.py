"""The gate over whole results directories."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.promotion.implementation import SKILL_FAILURES
from pytest_wfbench.promotion.model import Decision, Promotion

RANK = {"insufficient_evidence": 0, "keep_incumbent": 1, "promote": 2}
KINDS = ("oracle-failed", "skill-not-invoked", "no-work-produced")
RUN = st.tuples(st.sampled_from(["pass", "pass", "pass", "miss"]), st.sampled_from(KINDS), st.integers(1, 40))
TASK = st.tuples(st.lists(RUN, min_size=3, max_size=3), st.lists(RUN, min_size=3, max_size=3))
SWEEP = st.lists(TASK, min_size=1, max_size=4)


def near(old: int, new: int, factor: float) -> Any:
    """A task that is close to this or that threshold: runs that each side resolves of three, and what they cost."""
    return tuple(
        [("pass", "", cost)] * passes + [("miss", "oracle-failed", cost)] * (3 - passes)
        for passes, cost in ((old, 8.0), (new, 8.0 * factor))
    )


NEAR = st.lists(
    st.builds(
        near,
        st.sampled_from([0, 1, 3, 3]),
        st.sampled_from([0, 2, 3, 3, 3]),
        st.sampled_from([0.5, 0.9, 1.0, 1.15, 1.3, 2.5]),
    ),
    min_size=1,
    max_size=4,
)
PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def rows_of(demo: ModuleType, tasks: Any) -> list[Row]:
    rows = []
    for index, sides in enumerate(tasks):
        for arm, runs in zip(("old", "new"), sides, strict=True):
            for run, (outcome, kind, cost) in enumerate(runs, 1):
                told = {"kind": kind if outcome == "miss" else None, "outcome": outcome, "cost_usd": cost / 8}
                rows.append(demo.row(f"t{index}", arm, run, **told))
    return rows


def worsenings(row: Row) -> Iterator[dict[str, Any]]:
    """What makes one run worse: a higher cost, a miss where it passed, a skill that failed where it did not."""
    yield {"cost_usd": (row.cost_usd or 0) * 3}
    for kind in KINDS:
        if row.outcome == "pass" or (kind in SKILL_FAILURES and row.kind not in SKILL_FAILURES):
            yield {"outcome": "miss", "kind": kind, "resolved": False}


def gate(demo: ModuleType, rows: list[Row], of: list[Row] | None = None, **changes: Any) -> Promotion:
    manifest = {"arms": [demo.arm("old"), demo.arm("new", candidate_of="old")]} | changes
    return decide(Rows(tuple(rows)), demo.sweep(of or rows, **manifest), uncertain=False)


def only(promotion: Promotion) -> Decision:
    (decision,) = promotion.decisions
    return decision


@pytest.fixture
def good(demo: ModuleType) -> list[Row]:
    """Half the cost at equal quality: a clear promotion."""
    return rows_of(demo, [([("pass", "", 8)] * 3, [("pass", "", 4)] * 3)])


class TestProperties:
    @PROPERTY
    @given(tasks=SWEEP, seed=st.integers(0, 99))
    def test_order(self, demo: ModuleType, tasks: Any, seed: int) -> None:
        """The order of rows, of tasks and of runs changes no byte."""
        rows = rows_of(demo, tasks)
        shuffled = random.Random(seed).sample(rows, len(rows))
        assert gate(demo, shuffled, of=rows).to_json() == gate(demo, rows).to_json()
        turned = [row.model_copy(update={"run": 4 - row.run, "cell_id": row.cell_id + "x"}) for row in rows]
        assert only(gate(demo, turned)).decision == only(gate(demo, rows)).decision

    @PROPERTY
    @given(tasks=SWEEP, arm=st.sampled_from(["old", "new"]), task=st.integers(0, 3))
    def test_unusable(self, demo: ModuleType, tasks: Any, arm: str, task: int) -> None:
        """One more run that is unusable never turns a decision into a promotion."""
        rows = rows_of(demo, tasks)
        rows.append(demo.row(f"t{task % len(tasks)}", arm, 4, outcome="unusable"))
        assert only(gate(demo, rows)).decision == "insufficient_evidence"

    @PROPERTY
    @example(tasks=[near(3, 3, 1.3), near(3, 3, 0.5)])
    @example(tasks=[near(0, 0, 2.5), near(3, 3, 0.5)])
    @example(tasks=[near(0, 0, 1.0), near(0, 0, 1.0), near(3, 3, 0.5)])
    @example(tasks=[near(1, 2, 1.0), near(3, 3, 0.5)])
    @given(tasks=st.one_of(SWEEP, NEAR))
    def test_worse(self, demo: ModuleType, tasks: Any) -> None:
        """Making any run of the candidate dearer, or losing it, never turns a decision into a promotion."""
        rows = rows_of(demo, tasks)
        if only(gate(demo, rows)).decision == "promote":
            return
        for index, row in enumerate(rows):
            for change in worsenings(row) if row.arm == "new" else ():
                worse = [*rows[:index], row.model_copy(update=change), *rows[index + 1 :]]
                assert only(gate(demo, worse)).decision != "promote", (row.task, row.run, change)

    @PROPERTY
    @given(runs=st.lists(st.lists(RUN, min_size=3, max_size=3), min_size=1, max_size=4))
    def test_identical(self, demo: ModuleType, runs: Any) -> None:
        """A candidate with the very same rows is never promoted."""
        assert only(gate(demo, rows_of(demo, [(side, side) for side in runs]))).decision != "promote"

    @PROPERTY
    @given(tasks=st.lists(TASK, min_size=5, max_size=6), index=st.integers(0, 17), kind=st.sampled_from(KINDS))
    def test_bound(self, demo: ModuleType, tasks: Any, index: int, kind: str) -> None:
        """With a confidence asked for, too, nothing worse, unusable or identical is ever promoted where it was not."""
        options = {"promotion_confidence": 0.9}
        rows = rows_of(demo, tasks)
        mine = [row for row in rows if row.arm == "new"]
        row = mine[index % len(mine)]
        if only(gate(demo, rows, options=options)).decision != "promote":
            for change in ({"cost_usd": (row.cost_usd or 0) * 3}, {"outcome": "miss", "kind": kind, "resolved": False}):
                worse = [entry.model_copy(update=change) if entry is row else entry for entry in rows]
                lighter = change.get("kind") not in SKILL_FAILURES and row.outcome == "miss" and "kind" in change
                assert lighter or only(gate(demo, worse, options=options)).decision != "promote"
        else:
            assert only(gate(demo, rows)).decision == "promote"
        same = rows_of(demo, [(side, side) for side, _ in tasks])
        assert only(gate(demo, same, options=options)).decision != "promote"

    @PROPERTY
    @given(tasks=SWEEP)
    def test_reasons(self, demo: ModuleType, tasks: Any) -> None:
        """Every decision has reasons, each a sentence with a number, and splits all tasks."""
        decision = only(gate(demo, rows_of(demo, tasks)))
        assert decision.reasons
        assert all(reason.endswith(".") and any(c.isdigit() for c in reason) for reason in decision.reasons)
        assert sorted(decision.gated_tasks + decision.ungated_tasks) == sorted(f"t{i}" for i in range(len(tasks)))


class TestThresholds:
    def test_a_margin_of_one_is_noise(self, demo: ModuleType) -> None:
        """One run more resolved does not buy a dearer candidate in; two do."""
        lost, won = [("pass", "", 8), ("pass", "", 8), ("miss", "oracle-failed", 8)], [("pass", "", 9)] * 3
        assert only(gate(demo, rows_of(demo, [(lost, won)]))).decision == "keep_incumbent"
        decision = only(gate(demo, rows_of(demo, [(lost, won), (lost, won)])))
        assert (decision.decision, decision.reasons) == ("promote", ("2 more of 6 runs resolved, at least 2 decide.",))

    @pytest.mark.parametrize("base", [0.003, 0.07, 0.1, 0.7, 1.1, 3.3, 0.0049, 123.4])
    def test_exactly_the_limit(self, demo: ModuleType, base: float) -> None:
        """Exactly 20 % worse on one task is allowed, and exactly 5 % is enough, at any price."""
        costs = {"a": (base, base * 1.2), "b": (base, base * 0.95), "c": (base, base * 0.95)}
        rows = [
            demo.row(task, arm, run, cost_usd=cost)
            for task, both in costs.items()
            for arm, cost in zip(("old", "new"), both, strict=True)
            for run in (1, 2, 3)
        ]
        assert only(gate(demo, rows)).decision == "promote"


class TestEvidence:
    def test_good_rows_promote(self, demo: ModuleType, good: list[Row]) -> None:
        """The rows that the other tests of this class spoil would promote."""
        assert only(gate(demo, good)).decision == "promote"

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"run_status": "aborted"}, "The sweep is aborted, 6 of 6 cells have a result."),
            ({"run_status": "running"}, "The sweep is running, 6 of 6 cells have a result."),
            ({"stop": {"kind": "budget", "cause": "x"}}, "The sweep was stopped (budget) after 6 of 6 cells."),
            ({"missing_shards": ["2/3"]}, "1 shards never reported: 2/3."),
            ({"shard": "1/3"}, "This is shard 1/3 of a sweep: merge all of them first."),
            ({"sandbox": "host"}, "The sweep ran in the sandbox host, 0 of its rows are promotable."),
        ],
    )
    def test_the_sweep(self, demo: ModuleType, good: list[Row], changes: dict[str, Any], reason: str) -> None:
        """A sweep that is not whole, or was not sandboxed, is insufficient whatever its rows say."""
        decision = only(gate(demo, good, **changes))
        assert (decision.decision, decision.reasons) == ("insufficient_evidence", (reason,))

    def test_a_planned_cell_without_a_row(self, demo: ModuleType, good: list[Row]) -> None:
        """A planned cell of any arm that has no result makes the evidence insufficient."""
        decision = only(gate(demo, good, of=[*good, demo.row("t9", "baseline")]))
        assert decision.reasons == ("1 of 7 planned cells have no result.",)

    def test_a_torn_or_doubled_row(self, demo: ModuleType, good: list[Row]) -> None:
        """A torn or a doubled row makes the evidence insufficient."""
        sweep = demo.sweep(good, arms=[demo.arm("old"), demo.arm("new", candidate_of="old")])
        for rows in (Rows(tuple(good), torn="line 7"), Rows(tuple(good), duplicates=("x attempt 1",))):
            assert only(decide(rows, sweep)).decision == "insufficient_evidence"

    @pytest.mark.parametrize("model", [None, "anthropic/claude-latest", "openrouter/auto", "openai:latest"])
    def test_the_model(self, demo: ModuleType, good: list[Row], model: str | None) -> None:
        """No model, or an alias that moves, is insufficient."""
        rows = [row.model_copy(update={"requested_model": model}) for row in good]
        assert only(gate(demo, rows)).decision == "insufficient_evidence"

    def test_one_host_row(self, demo: ModuleType, good: list[Row]) -> None:
        """One row made outside bubblewrap is enough to refuse."""
        rows = [good[0].model_copy(update={"sandbox": "host"}), *good[1:]]
        expected = "1 of 6 runs were made outside the bwrap sandbox: such evidence is not promotable."
        assert only(gate(demo, rows)).reasons == (expected,)

    def test_a_task_the_candidate_lacks(self, demo: ModuleType, good: list[Row]) -> None:
        """A task that only one arm ran is named, not left out."""
        rows = good + [demo.row("t1", "old", n) for n in (1, 2, 3)]
        assert only(gate(demo, rows)).reasons[0] == "t1: no run under new, 3 are needed."

    def test_unequal_counts(self, demo: ModuleType, good: list[Row]) -> None:
        """Four runs against three are no pairs."""
        rows = [*good, demo.row("t0", "old", 4)]
        assert only(gate(demo, rows)).reasons == ("t0: 4 valid runs against 3: the counts must be equal.",)

    def test_all_attempts_are_paid(self, demo: ModuleType, good: list[Row]) -> None:
        """What a candidate's lost attempts cost counts against it."""
        lost = [row.model_copy(update={"outcome": "unusable", "cost_usd": 5.0}) for row in good if row.arm == "new"]
        newest = [row.model_copy(update={"attempt": 2}) for row in good if row.arm == "new"]
        rows = [row for row in good if row.arm == "old"] + lost + newest
        assert only(gate(demo, rows)).decision == "keep_incumbent"

    def test_question_tasks_have_no_policy(self, demo: ModuleType, good: list[Row]) -> None:
        """A kind of task without a policy is insufficient, and says so."""
        rows = [row.model_copy(update={"task_kind": "question"}) for row in good]
        assert only(gate(demo, rows)).reasons == ("There is no policy for question tasks, 1 of them were run.",)


class TestSeveral:
    def test_variations_are_tasks(self, demo: ModuleType, good: list[Row]) -> None:
        """Each wording of a task is weighed on its own."""
        again = [row.model_copy(update={"variation": 1, "cell_id": row.cell_id + "v"}) for row in good]
        assert only(gate(demo, good + again)).gated_tasks == ("t0", "t0~v1")

    def test_every_subject_must_promote(self, demo: ModuleType, good: list[Row]) -> None:
        """There is a decision per subject, and the overlay is promoted only if all promote."""
        other = [demo.row(row.task, row.arm, row.run, subject="codex:openai/gpt-5-2025", cost_usd=1.0) for row in good]
        found = gate(demo, good + other)
        assert {d.subject.partition(":")[0]: d.decision for d in found.decisions if d.subject} == {
            "codex": "keep_incumbent",
            "mini": "promote",
        }
        assert (found.decision, found.subject, len(found.subjects)) == ("keep_incumbent", None, 2)

    def test_a_required_arm_that_was_not_run(self, demo: ModuleType, good: list[Row]) -> None:
        """An arm that the overlay needs and that was not run is insufficient evidence."""
        candidate = {"overlay_digest": "sha256:1", "required_arms": ["new", "newer"]}
        found = gate(demo, good, candidate=candidate)
        assert [(d.candidate_arm, d.decision) for d in found.decisions] == [
            ("new", "promote"),
            ("newer", "insufficient_evidence"),
        ]
        assert found.decision == "insufficient_evidence"


class TestFile:
    def test_deterministic_and_readable(self, demo: ModuleType) -> None:
        """The file is a function of the directory, reads back as it was, and expires after 90 days."""
        rows, sweep = Rows(tuple(demo.rows())), demo.demo_sweep()
        text = decide(rows, sweep).to_json()
        assert text == decide(rows, sweep).to_json()
        assert Promotion.model_validate_json(text).to_json() == text
        plain = json.loads(text)
        assert (plain["schema_version"], plain["generated_at"], plain["evidence_expires_at"]) == (
            6, "2026-11-30T12:34:56.000Z", "2027-02-28T12:34:56.000Z",
        )  # fmt: skip

    def test_demo(self, demo: ModuleType) -> None:
        """The demo sweep promotes the one arm that got cheaper, and so not the overlay."""
        found = decide(Rows(tuple(demo.rows())), demo.demo_sweep())
        assert {d.candidate_arm: d.decision for d in found.decisions} == {
            "candidate_workflow": "keep_incumbent",
            "candidate_workflow_direct": "promote",
        }
        assert found.required_candidate_arms == ("candidate_workflow", "candidate_workflow_direct")
        assert found.candidate_overlay_digest == "sha256:0bad"
        assert [task.id for task in found.selected_tasks] == ["fx-drift", "ledger-aging", "rounding-half-even"]

    @pytest.mark.parametrize("metric", ["cost_usd", "output_tokens", "duration_s", "num_turns"])
    def test_metrics(self, demo: ModuleType, metric: str) -> None:
        """Every metric finds its number in the rows."""
        sweep = demo.sweep(demo.rows(), options={"promotion_metric": metric})
        decision = decide(Rows(tuple(demo.rows())), sweep).decisions[1]
        assert (decision.metric, decision.decision) == (metric, "promote")
        assert all(task.improvement_pct and task.improvement_pct > 5 for task in decision.tasks)
