"""The terminal's summary."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from syrupy.assertion import SnapshotAssertion

from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.report.summary import Report, summarise_sweep
from pytest_wfbench.report.terminal import terminal_lines


def of(demo: ModuleType) -> Report:
    rows, sweep = Rows(tuple(demo.rows())), demo.demo_sweep()
    return summarise_sweep(rows, sweep, decide(rows, sweep).decisions)


def test_plain(demo: ModuleType, snapshot: SnapshotAssertion) -> None:
    """Without colour there is a table, the decisions, the verdict and where the files are, and no escape code."""
    lines = terminal_lines(of(demo), Path("/nowhere/results/latest"))
    assert "\n".join(lines) == snapshot
    assert not any("\x1b" in line for line in lines)


def test_colour(demo: ModuleType) -> None:
    """With colour the verdict stands out."""
    lines = terminal_lines(of(demo), Path("/nowhere/results/latest"), color=True)
    assert any("\x1b[1;33mPASS WITH MISSES\x1b[0m" in line for line in lines)


def test_narrow(demo: ModuleType) -> None:
    """In a narrow terminal names are folded, not cut, and no line is too long."""
    lines = terminal_lines(of(demo), Path("r"), width=100)
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines)


def test_files_that_exist(demo: ModuleType, tmp_path: Path) -> None:
    """Only files that are there are named."""
    demo.write(tmp_path)
    assert terminal_lines(of(demo), tmp_path)[-1] == f"wfbench: {tmp_path}/ (results.jsonl)"


def test_foreign_text(demo: ModuleType) -> None:
    """Escape codes and markup in a row's names or reasons do nothing to the terminal."""
    rows = [demo.row("a\x1b[31m[bold]", outcome="unusable")]
    sweep = demo.sweep(rows, stop={"kind": "outage", "cause": "x\x1b]0;title\x07[red]y"})
    text = "\n".join(terminal_lines(summarise_sweep(Rows(tuple(rows)), sweep), Path("r")))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]" in text
