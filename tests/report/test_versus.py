"""What a sweep is compared with, and how that shows."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.derive import derive
from pytest_wfbench.evidence.baseline import Baseline, write_baseline
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.comment import render_comment
from pytest_wfbench.report.comment_rows import comment_lines
from pytest_wfbench.report.filing import NotValid, as_baseline
from pytest_wfbench.report.summary import Report, summarise_sweep

EARLIER = {"sweep_id": "20261101T120000Z-000000", "head": "abc1234"}


def report(demo: ModuleType, rows: list[Row], baseline: Baseline | None = None, **changes: Any) -> Report:
    return summarise_sweep(Rows(tuple(rows)), demo.sweep(rows, **changes), (), baseline)


def question(demo: ModuleType, task: str, tokens: int = 10_000, run: int = 1, **changes: Any) -> Row:
    usage = {"total_input": tokens, "output": 0}
    row: Row = demo.row(task, "baseline", run, **{"task_kind": "question", "usage": usage, **changes})
    return row


def filed(demo: ModuleType, rows: list[Row], name: str = "main", **changes: Any) -> Baseline:
    return as_baseline(report(demo, rows, **{**EARLIER, **changes}), "main", name)


def deltas(found: Report) -> dict[str, tuple[str, str]]:
    return {line.name: (line.group, line.delta) for line in comment_lines(found)}


class TestDelta:
    def test_against_a_baseline(self, demo: ModuleType) -> None:
        """Tokens and outcomes are compared task by task; what is new has no difference."""
        before = filed(demo, [question(demo, name) for name in "abc"])
        now = [question(demo, "a", 11_000), question(demo, "b", outcome="miss"), question(demo, "new")]
        assert deltas(report(demo, now, before)) == {
            "a": ("pass", "+10.0 %"), "b": ("regression", "±0.0 %"), "new": ("pass", "–"),
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("then", "now"),
        [
            ({}, {"models_answered": ["another"]}),
            ({"models_answered": ["another"]}, {}),
            ({}, {"models_answered": ["claude-sonnet-4-5-20250929", "another"]}),
            ({"models_answered": None}, {"models_answered": None}),
            ({}, {"usage_source": "litellm"}),
            ({"usage_source": "litellm"}, {}),
            ({"usage_source": None}, {"usage_source": None}),
            ({"usage_incomplete": True}, {}),
            ({}, {"usage_incomplete": True}),
            ({"task_digest": "sha256:1"}, {"task_digest": "sha256:2"}),
        ],
    )
    def test_only_like_with_like(self, demo: ModuleType, then: dict[str, Any], now: dict[str, Any]) -> None:
        """A difference of tokens is one only where model, accounting and task are the same, and all is known."""
        before = filed(demo, [question(demo, "a", **then)])
        assert deltas(report(demo, [question(demo, "a", 20_000, **now)], before))["a"][1] == "–"

    def test_another_model_still_regresses(self, demo: ModuleType) -> None:
        """Who answered makes no difference to whether a task that passed still passes."""
        before = filed(demo, [question(demo, "a", subject="mini:openai/x", models_answered=["x"])])
        now = [question(demo, "a", subject="mini:openai/y", models_answered=["y"], outcome="miss")]
        assert deltas(report(demo, now, before)) == {"a": ("regression", "–")}

    def test_several_subjects(self, demo: ModuleType) -> None:
        """With several subjects each is compared with itself only."""
        before = filed(demo, [question(demo, "a", subject="mini:openai/x")])
        now = [question(demo, "a", 20_000, subject=f"mini:openai/{name}") for name in "xy"]
        assert [line.delta for line in comment_lines(report(demo, now, before))] == ["+100.0 %", "–"]

    def test_flaky_at_both(self, demo: ModuleType) -> None:
        """A share that fell is a regression, and says what it was; one that rose or stayed is none."""
        before = filed(demo, [question(demo, "a", run=n) for n in (1, 2)])
        now = [question(demo, "a", run=n, outcome=o) for n, o in ((1, "pass"), (2, "miss"), (3, "pass"))]
        (line,) = comment_lines(report(demo, now, before))
        assert (line.group, line.result) == ("regression", "2/3, was 2/2")
        better = filed(demo, now)
        again = [question(demo, "a", run=n, outcome=o) for n, o in ((1, "pass"), (2, "miss"), (3, "pass"))]
        assert comment_lines(report(demo, again, better))[0].group == "miss"


class TestShown:
    def test_named(self, demo: ModuleType) -> None:
        """The comment names the baseline, its commit, its result, and how much of the sweep it shares."""
        before = filed(demo, [question(demo, "a"), question(demo, "b", 30_000)], "v1.2 | @x")
        text = render_comment(report(demo, [question(demo, "a", 11_000), question(demo, "new")], before))
        assert " · Δ +10.0 % tokens against main v1.2 \\| @&#8203;x\n" in text
        assert "sweep 20261101T120000Z-000000 of abc1234, which 2/2 passed; 1 of 2 rows in both." in text

    def test_none(self, demo: ModuleType) -> None:
        """Without one it says so; where one was looked for, too."""
        assert "Δ no baseline" in render_comment(report(demo, [question(demo, "a")]))
        asked = render_comment(report(demo, [question(demo, "a")], options={"baselines": "store"}))
        assert "No baseline that is filed shares a task with this sweep." in asked

    def test_from_the_directory(self, demo: ModuleType, tmp_path: Path) -> None:
        """What a directory is compared with lies in it: its reports need no store."""
        rows = [question(demo, "a", 11_000)]
        demo.write(tmp_path, rows, demo.sweep(rows))
        write_baseline(tmp_path, filed(demo, [question(demo, "a")]))
        assert "Δ +10.0 % tokens against main" in render_comment(derive(tmp_path).summary)


class TestFiling:
    @pytest.mark.parametrize(
        ("outcomes", "changes", "said"),
        [
            (("pass", "unusable"), {}, "is BROKEN"),
            (("pass",), {"run_status": "running"}, "is INCOMPLETE"),
            (("pass",), {"missing_shards": ["2/2"]}, "is INCOMPLETE"),
            (("skipped",), {}, "graded no cell"),
        ],
    )
    def test_refused(self, demo: ModuleType, outcomes: Any, changes: Any, said: str) -> None:
        """What is broken, incomplete or empty is no baseline."""
        rows = [question(demo, "a", run=n, outcome=o) for n, o in enumerate(outcomes, 1)]
        with pytest.raises(NotValid, match=said):
            filed(demo, rows, **changes)

    @pytest.mark.parametrize("outcome", ["pass", "miss"])
    def test_a_miss_is_no_obstacle(self, demo: ModuleType, outcome: str) -> None:
        """A sweep whose cells missed, even below its floor, is as good a baseline."""
        made = filed(demo, [question(demo, "a", outcome=outcome)], options={"min_pass": 1.0})
        assert made.entries[0].resolved == (outcome == "pass")
        assert Baseline.model_validate_json(made.to_json()) == made

    def test_no_rows_no_answers(self, demo: ModuleType) -> None:
        """Neither an answer nor a reason is filed."""
        row = question(demo, "a", answer="the answer", outcome="miss", reason="the reason")
        assert not {"the answer", "the reason"} & set(filed(demo, [row]).to_json().split('"'))
