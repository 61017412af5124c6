"""Everything that follows from a results directory."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pytest_wfbench.derive import derive_all
from pytest_wfbench.evidence.store import EvidenceError

FILES = ("report.md", "comment.md", "promotion.json")


def test_again(demo: ModuleType, tmp_path: Path) -> None:
    """Every derived file can be deleted and made again, byte for byte, and a second derivation changes nothing."""
    demo.write(tmp_path)
    derive_all(tmp_path)
    first = {name: (tmp_path / name).read_bytes() for name in FILES}
    for name in FILES:
        (tmp_path / name).unlink()
    derive_all(tmp_path)
    derive_all(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == first
    assert {path.name for path in tmp_path.iterdir()} == {"sweep.json", "results.jsonl", *FILES}


def test_elsewhere(demo: ModuleType, tmp_path: Path) -> None:
    """A copy of the directory gives the same bytes, whatever its place and the order of its rows."""
    for name, rows in (("one", demo.rows()), ("two", demo.rows()[::-1])):
        demo.write(tmp_path / name, rows, demo.demo_sweep())
        derive_all(tmp_path / name)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_one_verdict(demo: ModuleType, tmp_path: Path) -> None:
    """The verdict is the same word in the value, the report and the comment."""
    rows = [demo.row(outcome="unusable")]
    derived = derive_all(demo.write(tmp_path, rows))
    assert (derived.verdict.word, derived.verdict.exit_status) == ("BROKEN", 1)
    assert (tmp_path / "report.md").read_text().startswith("# BROKEN 💥\n")
    assert (tmp_path / "comment.md").read_text().splitlines()[1].startswith("### BROKEN 💥 Smoke eval — 0/0 pass")


def test_no_candidate(demo: ModuleType, tmp_path: Path) -> None:
    """Without a candidate there is no promotion.json, and one of earlier days does not stay."""
    demo.write(tmp_path, [demo.row(arm="baseline")])
    (tmp_path / "promotion.json").write_text("{}")
    assert derive_all(tmp_path).promotion is None
    assert not (tmp_path / "promotion.json").exists()


def test_decisions_are_reported(demo: ModuleType, tmp_path: Path) -> None:
    """The report shows the gate's decisions with their reasons."""
    derived = derive_all(demo.write(tmp_path))
    text = (tmp_path / "report.md").read_text()
    assert derived.promotion
    for decision in derived.promotion.decisions:
        assert f"### {decision.candidate_arm} against {decision.incumbent_arm}: {decision.decision}" in text
        assert all(reason in text for reason in decision.reasons)


def test_unreadable(tmp_path: Path) -> None:
    """A directory that cannot be read is an error of one line, and nothing is written."""
    with pytest.raises(EvidenceError):
        derive_all(tmp_path)
    assert not list(tmp_path.iterdir())
