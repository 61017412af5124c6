"""One verdict, the same word in every place that shows it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.cli import main
from pytest_wfbench.derive import SUMMARY_BYTES, append_summary, derive_all
from pytest_wfbench.report.terminal import terminal_lines

STOPS = {kind: {"stop": {"kind": kind, "cause": "why"}, "run_status": "aborted"}
         for kind in ("preflight", "outage", "budget", "interrupted")}  # fmt: skip
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], str, int]] = {
    "pass": (("pass",), {}, "PASS", 0),
    "misses": (("pass", "miss"), {}, "PASS WITH MISSES", 0),
    "nine-questions-two-misses": (("pass",) * 7 + ("miss",) * 2, {}, "PASS WITH MISSES", 0),
    "floor": (("pass",) * 6 + ("miss",) * 3, {"options": {"min_pass": 0.7}}, "BELOW FLOOR", 1),
    "floor-met": (("pass",) * 7 + ("miss",) * 2, {"options": {"min_pass": 0.7}}, "PASS WITH MISSES", 0),
    "unusable": (("unusable",) * 9, {}, "BROKEN", 1),
    "tolerated": (("pass", "unusable"), {"options": {"max_unusable": 1}}, "PASS", 0),
    "one-too-many": (("pass", "unusable", "unusable"), {"options": {"max_unusable": 1}}, "BROKEN", 1),
    "nothing-answered": (("unusable",), {"options": {"max_unusable": 5}}, "BROKEN", 1),
    "preflight": ((), STOPS["preflight"], "BROKEN", 1),
    "outage": (("unusable",) * 5, STOPS["outage"], "BROKEN", 1),
    "budget": (("pass",), STOPS["budget"], "INCOMPLETE", 1),
    "budget-below-floor": (("miss",), {"options": {"min_pass": 1.0}, **STOPS["budget"]}, "INCOMPLETE", 1),
    "interrupted": (("pass",), STOPS["interrupted"], "INCOMPLETE", 2),
    "killed": (("pass",), {"run_status": "running", "ended_at": None, "exit_status": None}, "INCOMPLETE", 2),
    "shard": (("pass",), {"missing_shards": ["2/3"]}, "INCOMPLETE", 1),
}


@pytest.mark.parametrize(("outcomes", "changes", "word", "status"), CASES.values(), ids=CASES)
def test_everywhere(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], outcomes: Any, changes: Any, word: str,
    status: int,
) -> None:  # fmt: skip
    """Value, report, comment, terminal, summary of the step, JSON and verb have the same word and the same numbers."""
    rows = [demo.row(run=n, outcome=outcome) for n, outcome in enumerate(outcomes, 1)]
    demo.write(tmp_path, rows, demo.sweep(rows or [demo.row()], **changes))
    derived = derive_all(tmp_path)
    verdict, rate = derived.verdict, f"{outcomes.count('pass')}/{sum(o != 'unusable' for o in outcomes)} pass"
    assert (verdict.word, verdict.exit_status) == (word, status)
    assert (tmp_path / "report.md").read_text().startswith(f"# {word} {verdict.glyph}\n")
    headline = f"### {word} {verdict.glyph} Smoke eval — {rate}"
    assert (tmp_path / "comment.md").read_text().splitlines()[1].startswith(headline)
    told = [line for line in terminal_lines(derived.summary, tmp_path) if line.startswith(f"{word}  {rate}")]
    assert len(told) == 1
    assert append_summary(derived, {"GITHUB_STEP_SUMMARY": str(tmp_path / "step.md")}) is None
    assert (tmp_path / "step.md").read_text() == (tmp_path / "comment.md").read_text()
    capsys.readouterr()
    assert main(["report", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["verdict"]
    assert (shown["word"], shown["exit_status"], shown["glyph"]) == (word, status, verdict.glyph)
    assert (shown["counts"]["passed"], shown["graded"]) == (outcomes.count("pass"), verdict.counts.graded)


class TestStepSummary:
    def written(self, demo: ModuleType, tmp_path: Path, rows: int) -> Any:
        made = [demo.row(f"t{n:05}", outcome="miss", reason="é" * 160) for n in range(rows)]
        return derive_all(demo.write(tmp_path / "results", made, demo.sweep(made)))

    def test_appended(self, demo: ModuleType, tmp_path: Path) -> None:
        """What others have written stays, and each sweep adds its own once."""
        derived, place = self.written(demo, tmp_path, 1), tmp_path / "step.md"
        place.write_text("before\n")
        for _ in range(2):
            assert append_summary(derived, {"GITHUB_STEP_SUMMARY": str(place)}) is None
        comment = (tmp_path / "results/comment.md").read_text()
        assert place.read_text() == f"before\n{comment}{comment}"

    @pytest.mark.slow
    def test_a_million_bytes(self, demo: ModuleType, tmp_path: Path) -> None:
        """It is never larger than a step's summary may be, whatever is there already."""
        derived, place = self.written(demo, tmp_path, 4000), tmp_path / "step.md"
        assert append_summary(derived, {"GITHUB_STEP_SUMMARY": str(place)}) is None
        assert 60_000 < place.stat().st_size <= SUMMARY_BYTES
        place.write_text("x" * (SUMMARY_BYTES - 5000))
        assert append_summary(derived, {"GITHUB_STEP_SUMMARY": str(place)}) is None
        assert SUMMARY_BYTES - 5000 < place.stat().st_size <= SUMMARY_BYTES
        place.write_text("x" * (SUMMARY_BYTES - 10))
        assert "leaves no room" in append_summary(derived, {"GITHUB_STEP_SUMMARY": str(place)})
        assert place.stat().st_size == SUMMARY_BYTES - 10

    def test_nowhere(self, demo: ModuleType, tmp_path: Path) -> None:
        """A place that cannot be written is told; without the variable there is nothing to do."""
        derived = self.written(demo, tmp_path, 1)
        assert append_summary(derived, {}) is None
        told = append_summary(derived, {"GITHUB_STEP_SUMMARY": str(tmp_path)})
        assert told == f"GITHUB_STEP_SUMMARY was not written: {os.strerror(21)}"

    def test_killed(self, demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a sweep that was killed the verb writes the summary; of one that ended only when it is told to."""
        rows = [demo.row()]
        for name, changes, flags, times in (
            ("killed", {"run_status": "running", "ended_at": None}, [], 1),
            ("ended", {}, [], 0),
            ("merged", {}, ["--summary"], 1),
        ):
            place = tmp_path / f"{name}.md"
            monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
            directory = demo.write(tmp_path / name, rows, demo.sweep([*rows, demo.row("b")], **changes))
            assert main(["comment", str(directory), *flags]) == 0
            text = place.read_text() if place.exists() else ""
            assert text.count("<!-- pytest-wfbench") == times
            assert "INCOMPLETE 🚧" in (directory / "comment.md").read_text()
