"""The terminal's summary: a table, the verdict, and where the files are."""

from __future__ import annotations

import io
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pytest_wfbench.report.escape import one_line
from pytest_wfbench.report.prose import decision_sentence
from pytest_wfbench.report.summary import Report
from pytest_wfbench.report.words import count, dollars, seconds
from pytest_wfbench.statistics.aggregate import Summary

COLUMNS = ("task", "arm", "resolved", "tokens in", "cache", "out", "cost", "wall", "turns", "churn", "errors")
LEFT = 2
STYLES = {"PASS": "bold green", "PASS WITH MISSES": "bold yellow"}
FILES = ("report.md", "comment.md", "promotion.json", "results.jsonl")


def terminal_lines(report: Report, directory: Path, *, color: bool = False, width: int = 140) -> list[str]:
    """Return the lines to print: with ANSI colours where ``color`` is, plain otherwise."""
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=color, no_color=not color, width=width, highlight=False, emoji=False, markup=False,
        legacy_windows=False,
    )  # fmt: skip
    for subject in report.subjects:
        console.print(Text(one_line(subject, 200)))
        console.print(_table([entry for entry in report.summaries if entry.key.subject == subject]))
    for decision in report.decisions:
        console.print(Text(one_line(decision_sentence(decision), 600)))
    for sentence in report.health:
        console.print(Text(one_line(sentence, 600)))
    console.print(_verdict(report))
    console.print(Text(f"wfbench: {_places(directory)}"), soft_wrap=True)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def _table(summaries: list[Summary]) -> Table:
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if index < LEFT else "right", no_wrap=index >= LEFT, overflow="fold")
    for entry in summaries:
        table.add_row(*_cells(entry))
    return table


def _cells(entry: Summary) -> tuple[Text, ...]:
    shown = (
        one_line(entry.key.unit, 80),
        one_line(entry.key.arm, 80),
        f"{entry.resolved}/{entry.valid}",
        count(entry.tokens_in),
        count(entry.tokens_cached),
        count(entry.tokens_out),
        dollars(entry.cost_usd),
        seconds(entry.wall),
        count(entry.turns),
        count(entry.churn),
        str(entry.unusable),
    )
    return tuple(Text(text) for text in shown)


def _verdict(report: Report) -> Text:
    verdict = report.verdict
    text = Text(verdict.word, style=STYLES.get(verdict.word, "bold red"))
    text.append(f"  {verdict.counts.passed}/{verdict.counts.graded} pass", style="default")
    return text.append(f": {one_line(verdict.cause, 600)}", style="default") if verdict.cause else text


def _places(directory: Path) -> str:
    found = [name for name in FILES if (directory / name).exists()]
    return f"{directory}/" + (f" ({', '.join(found)})" if found else "")
