"""report.md."""

from __future__ import annotations

import random
import re
from types import ModuleType

from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.report.markdown import render_markdown
from pytest_wfbench.report.summary import summarise_sweep

SCORES = {"weighted_f1": 0.8, "blocker_recall": None, "false_positives": 1, "verdict_correct": True,
          "clean_pass": False,           "clean_control": False}  # fmt: skip


def test_demo(demo: ModuleType, snapshot: SnapshotAssertion) -> None:
    """The verdict comes first, then plain words, medians, savings, the gate, misses, skipped tasks and the evidence."""
    rows, sweep = Rows(tuple(demo.rows())), demo.demo_sweep()
    assert render_markdown(summarise_sweep(rows, sweep, decide(rows, sweep).decisions)) == snapshot


def test_poor_evidence(demo: ModuleType, snapshot: SnapshotAssertion) -> None:
    """Everything that is wrong with the evidence is said, and the unknown is a dash."""
    rows = [
        demo.row(
            "a", "baseline", outcome="unusable", reason="connection reset <b>", usage_incomplete=True, cost_usd=None
        ),
        demo.row("a", "workflow", cost_usd=None, claimed_usage={"output": 499}, failed_requests=2, churn=None),
        demo.row("b", "review", task_kind="review", outcome="miss", kind="review-imperfect", review=SCORES, attempt=2),
    ]
    changes = {"sandbox": "host", "open_calls": [{"cell_id": "x", "session": "work", "call_id": "c1"}]}
    found = Rows((*rows, demo.row("c", models_answered=["other"])), torn="results.jsonl line 5: unfinished")
    assert render_markdown(summarise_sweep(found, demo.sweep(rows, **changes))) == snapshot


def test_empty(demo: ModuleType) -> None:
    """A sweep without any row still has a report."""
    text = render_markdown(summarise_sweep(Rows(()), demo.sweep([demo.row()])))
    assert text.startswith("# INCOMPLETE 🚧\n")
    assert "1 without a result" in text


def test_order_of_rows(demo: ModuleType) -> None:
    """The order of rows changes no byte."""
    rows, sweep = demo.rows(), demo.demo_sweep()
    expected = render_markdown(summarise_sweep(Rows(tuple(rows)), sweep))
    random.Random(1).shuffle(rows)
    assert render_markdown(summarise_sweep(Rows(tuple(rows)), sweep)) == expected


def test_tables_render(demo: ModuleType) -> None:
    """Every table is one in GitHub's Markdown: each row has as many cells as the head."""
    rows, sweep = Rows(tuple(demo.rows())), demo.demo_sweep()
    text = render_markdown(summarise_sweep(rows, sweep, decide(rows, sweep).decisions))
    html = MarkdownIt("commonmark").enable("table").render(text)
    tables = re.findall(r"<table>.*?</table>", html, re.DOTALL)
    assert len(tables) == 6
    for table in tables:
        widths = {len(re.findall(r"<t[hd]\b", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)}
        assert len(widths) == 1
    assert not re.search(r"^\|", re.sub(r"<[^>]+>", "", html), re.MULTILINE)


def test_nothing_run(demo: ModuleType) -> None:
    """A sweep that ended before its first cell claims nothing about the evidence of its attempts."""
    stopped = demo.sweep([demo.row()], stop={"kind": "preflight", "cause": "why"})
    text = render_markdown(summarise_sweep(Rows(()), stopped))
    assert "- No cell was run." in text
    assert "nothing was found wanting" not in text
