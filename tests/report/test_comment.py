"""The pull-request comment."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.comment import COMMENT_BYTES, comment_lines, marker, render_comment
from pytest_wfbench.report.summary import Report, summarise_sweep

JUDGED = {"task_kind": "question", "judge": {"pass": True, "score": 1.0, "reason": "right", "model": "gpt-5-mini"}}
CI = {"workflow": "Smoke eval", "order": 12002, "url": "https://github.com/o/r/actions/runs/9"}


def report(demo: ModuleType, rows: list[Row], **changes: Any) -> Report:
    return summarise_sweep(Rows(tuple(rows)), demo.sweep(rows, **changes))


def smoke(demo: ModuleType) -> list[Row]:
    """Nine questions under one arm: six pass, one misses, two are unusable."""
    down = {"task_kind": "question", "outcome": "unusable", "kind": "provider-error", "usage_incomplete": True,
            "reason": "No fallback model group found for <claude> @oncall see #12", "num_turns": 0}  # fmt: skip
    rows = [demo.row(f"question-{n}", "baseline", **JUDGED) for n in range(1, 7)]
    rows.append(
        demo.row("question-7", "baseline", outcome="miss", kind="rubric-missed", reason="names | no\nyear", **JUDGED)
    )
    return rows + [demo.row(f"question-{n}", "baseline", **down) for n in (8, 9)]


class TestWhole:
    def test_implementation(self, demo: ModuleType, snapshot: SnapshotAssertion) -> None:
        """A sweep of implementation tasks names its rows by task and arm."""
        assert render_comment(summarise_sweep(Rows(tuple(demo.rows())), demo.demo_sweep())) == snapshot

    def test_broken_smoke(self, demo: ModuleType, snapshot: SnapshotAssertion) -> None:
        """A broken smoke eval says so first, with the one cause, counted."""
        assert render_comment(report(demo, smoke(demo), ci=CI)) == snapshot

    def test_preflight(self, demo: ModuleType, snapshot: SnapshotAssertion) -> None:
        """A sweep that ran no cell says why, once."""
        stop = {
            "kind": "preflight",
            "cause": "gpt-5 at http://127.0.0.1:4000 answered 404: No fallback model group found",
        }
        rows = [demo.row("q", "baseline", **JUDGED)]
        found = summarise_sweep(Rows(()), demo.sweep(rows, stop=stop, run_status="aborted"))
        assert render_comment(found, key="smoke") == snapshot


class TestModels:
    def test_a_change_is_flagged(self, demo: ModuleType) -> None:
        """A subject whose answering model changed within the sweep is flagged, however little room there is."""
        answered = ("claude-a", "claude-b|<x>")
        rows = [demo.row(f"q{n}", "baseline", models_answered=(model,), **JUDGED) for n, model in enumerate(answered)]
        found = report(demo, rows)
        told = "was answered by 2 models: claude-a, claude-b"
        for limit in (COMMENT_BYTES, 300):
            (line,) = [line for line in render_comment(found, limit=limit).splitlines() if told in line]
            assert line.startswith("> ⚠️")
        assert "<x>" not in render_comment(found)
        assert any(told in sentence for sentence in found.health)

    def test_one_model_each(self, demo: ModuleType) -> None:
        """Two subjects that are answered by a model each are no change."""
        rows = [demo.row("q", "baseline", subject=f"mini:openai/{m}", models_answered=(m,), **JUDGED) for m in "ab"]
        found = report(demo, rows)
        assert found.model_changes == ()
        assert "⚠️" not in render_comment(found)


class TestMarker:
    @pytest.mark.parametrize(
        ("key", "ci", "expected"),
        [
            ("smoke", CI, "<!-- pytest-wfbench key=smoke order=12002 -->"),
            (None, CI, "<!-- pytest-wfbench key=Smoke-eval order=12002 -->"),
            (None, None, "<!-- pytest-wfbench key=wfbench order=1796040000 -->"),
            ("a --> <b>", None, "<!-- pytest-wfbench key=a-b order=1796040000 -->"),
        ],
    )
    def test_first_line(self, demo: ModuleType, key: str | None, ci: Any, expected: str) -> None:
        """The first line is the key given, else the workflow's name, and the order of the CI run, else the start."""
        sweep = demo.sweep([demo.row()], ci=ci)
        assert marker(sweep, key) == expected
        assert render_comment(summarise_sweep(Rows((demo.row(),)), sweep), key).splitlines()[0] == expected


class TestRows:
    def test_order(self, demo: ModuleType) -> None:
        """Unusable rows come first, then regressions, then misses, then passes."""
        rows = [
            demo.row("a", "workflow"),
            demo.row("a", "candidate_workflow", outcome="miss"),
            demo.row("b", "workflow", outcome="miss"),
            demo.row("b", "candidate_workflow", outcome="miss"),
            demo.row("c", "workflow", outcome="unusable"),
        ]
        lines = comment_lines(report(demo, rows))
        assert [(line.group, line.name) for line in lines] == [
            ("unusable", "c · workflow"),
            ("regression", "a · candidate_workflow"),
            ("miss", "b · workflow"),
            ("miss", "b · candidate_workflow"),
            ("pass", "a · workflow"),
        ]

    def test_several_runs(self, demo: ModuleType) -> None:
        """Several runs read 2/3; an unusable one stands outside the fraction."""
        rows = [demo.row("a", "x", n, outcome=o) for n, o in ((1, "pass"), (2, "miss"), (3, "unusable"))]
        assert comment_lines(report(demo, rows))[0].result == "1/2, 1 unusable"

    def test_delta_needs_the_same_model(self, demo: ModuleType) -> None:
        """A token difference is shown only where the same model answered both, and both are metered."""
        base = demo.row("a", "baseline")
        more = {"total_input": 21000, "output": 0}
        shown = [
            comment_lines(report(demo, [base, demo.row("a", "x", usage=more, **change)]))[1].delta
            for change in ({}, {"models_answered": ["other"]}, {"models_answered": None}, {"usage_incomplete": True})
        ]
        assert shown == ["+100.0 %", "–", "–", "–"]

    def test_a_silent_shard(self, demo: ModuleType) -> None:
        """A shard that never reported is a row that says so."""
        text = render_comment(report(demo, [demo.row()], missing_shards=["2/3"]))
        assert "| shard 2/3 | 💥 never reported | – | – | – |" in text
        assert "### INCOMPLETE" in text

    def test_secrets(self, demo: ModuleType) -> None:
        """A reason that quotes a key shows none."""
        rows = [demo.row(outcome="unusable", reason="401: bad key sk-ant-api03-AAAABBBBCCCCDDDD1234")]
        text = render_comment(report(demo, rows))
        assert "sk-ant" not in text
        assert "redacted" in text


class TestSize:
    def many(self, demo: ModuleType, misses: int, passes: int) -> Report:
        rows = [demo.row(f"task-{n:05}", "baseline", outcome="miss", reason="é" * 300) for n in range(misses)]
        return report(demo, rows + [demo.row(f"pass-{n:05}", "baseline") for n in range(passes)])

    @pytest.mark.parametrize(
        ("misses", "passes", "shown"),
        [
            (50, 100, (True, True, True)),
            (200, 400, (False, True, True)),
            (300, 1500, (False, True, False)),
            (2000, 10, (False, False, False)),
        ],
    )
    def test_ladder(self, demo: ModuleType, misses: int, passes: int, shown: tuple[bool, bool, bool]) -> None:
        """Reasons go first, then passes fold, then rows are counted; marker, headline and footer stay."""
        text = render_comment(self.many(demo, misses, passes))
        assert len(text.encode()) <= COMMENT_BYTES
        assert ("éé" in text, "task-00000" in text, "pass-00000" in text) == shown
        assert text.startswith("<!-- pytest-wfbench")
        assert f"### PASS WITH MISSES 🟡 Smoke eval — {passes}/{misses + passes} pass" in text
        assert "</sub>" in text

    def test_summary_page(self, demo: ModuleType) -> None:
        """The same renderer fills a job summary of a million bytes."""
        text = render_comment(self.many(demo, 2000, 10), limit=1_000_000)
        assert text.count("éé") > 0

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.text(max_size=400), st.integers(500, 3000))
    def test_always_whole(self, demo: ModuleType, reason: str, limit: int) -> None:
        """Whatever reasons say and however small the place: it fits, and every table row has five cells."""
        rows = [demo.row(f"t{n}", "baseline", outcome="miss", reason=reason) for n in range(5)]
        text = render_comment(report(demo, rows), limit=limit)
        assert len(text.encode()) <= limit
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        assert all(row.count("<td") in (0, 5) for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL))
        assert text.count("<details>") == text.count("</details>")


class TestCause:
    def stopped(self, demo: ModuleType, cause: str, reason: str, kind: str = "no-output") -> str:
        down = {"task_kind": "question", "outcome": "unusable", "kind": kind, "reason": reason}
        rows = [demo.row(f"q{n}", "baseline", **down) for n in range(5)]
        stop = {"kind": "outage", "cause": cause}
        options = {"judge_model": "replay/judge"}
        return render_comment(report(demo, rows, stop=stop, run_status="aborted", options=options))

    def test_said_once(self, demo: ModuleType) -> None:
        """A cause that the stop names already is not said again, neither beside the count nor in the rows."""
        text = self.stopped(demo, "5 in a row, the last one: no-output: no answer", "no answer")
        assert text.count("no answer") == 1
        assert text.count("| 💥 unusable — no-output |") == 5
        assert "the last one: no-output: no answer. 5 of 5 unusable: no-output\n" in text

    def test_said_at_all(self, demo: ModuleType) -> None:
        """One that it does not name stands beside the count."""
        assert "> 💥 5 in a row. 5 of 5 unusable: no-output — no answer\n" in self.stopped(
            demo, "5 in a row", "no answer"
        )

    def test_judge_without_a_verdict(self, demo: ModuleType) -> None:
        """A judge without a verdict is named as the option has it, and whether one was asked of it is said."""
        assert " · judge replay/judge (gave no verdict) · " in self.stopped(demo, "c", "r", "judge-error")
        assert " · judge replay/judge (not asked) · " in self.stopped(demo, "c", "r")
