"""promotion.json told in sentences, and told apart from what the rows say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.cli import main
from pytest_wfbench.derive import derive_all
from pytest_wfbench.promotion.difference import differences

SCHEMA5 = Path(__file__).parents[1] / "data" / "promotion_schema5.json"


@pytest.fixture
def results(tmp_path: Path, demo: ModuleType) -> Path:
    directory: Path = demo.write(tmp_path / "results")
    derive_all(directory)
    return directory


def test_schema_5(capsys: pytest.CaptureFixture[str]) -> None:
    """Schema 5 is read: what it says in sentences, and that it is never applied."""
    assert main(["gate", "--explain", str(SCHEMA5)]) == 0
    out = capsys.readouterr().out
    assert "candidate_workflow_direct against workflow_direct by cost_usd: it is promoted.\n" in out
    assert "- Median improvement 11.0 %.\n" in out
    assert "never applied. Run the sweep again" in out


def test_schema_6(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Schema 6 is told with every decision and reason; with its directory, that it follows from the rows."""
    assert main(["gate", str(results), "--explain", str(results / "promotion.json")]) == 0
    out = capsys.readouterr().out
    assert "candidate_workflow against workflow by cost_usd: the incumbent is kept." in out
    assert out.endswith("It is what follows from the rows.\n")


def test_edited(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file edited by hand is told apart, and stays as it is."""
    path = results / "promotion.json"
    edited = path.read_text().replace('"decision": "keep_incumbent"', '"decision": "promote"')
    path.write_text(edited)
    assert main(["gate", str(results), "--explain", str(path)]) == 1
    out = capsys.readouterr().out
    assert "decisions[0].decision: the file says 'promote', the rows say 'keep_incumbent'.\n" in out
    assert path.read_text() == edited


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": "6"}', '{"schema_version": 4}', '{"schema_version": 6}']
)
def test_unreadable(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no promotion.json is a usage error of one line, with its remedy."""
    (tmp_path / "p.json").write_text(text)
    assert main(["gate", "--explain", str(tmp_path / "p.json")]) == 4
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert main(["gate", "--explain", str(tmp_path / "none.json")]) == 4
    (tmp_path / "link.json").symlink_to(SCHEMA5)
    assert main(["gate", "--explain", str(tmp_path / "link.json")]) == 4
    assert main(["gate"]) == 4


@pytest.mark.parametrize(
    ("said", "found", "told"),
    [
        ({"a": [1, 2.0]}, {"a": [1, 2.0000000001]}, []),
        ({"a": 1}, {"a": True}, ["a: the file says 1, the rows say True."]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: the file says 1 entries, the rows say 2 entries."]),
        ({"b": {"c": "x"}}, {"b": {}}, ["b.c: the file says 'x', the rows say nothing."]),
        ({}, {"b": 0.5}, ["b: the file says nothing, the rows say 0.5."]),
    ],
)
def test_differences(said: Any, found: Any, told: list[str]) -> None:
    """Each leaf that differs is named; numbers are alike up to a millionth."""
    assert list(differences(said, found)) == told


def test_power(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rates of both policies, as far as there are rows; the same again, byte for byte."""
    texts = []
    for _ in range(2):
        assert main(["power", str(results), "--sims", "50"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert "identical candidate      promoted in 0.0 % (0.0 … 7.1 %)" in texts[0]
    assert "No review task has a valid run here" in texts[0]
    assert main(["power", str(results), "--sims", "20", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [power["arm"] for power in plain["powers"]] == ["workflow", "workflow_direct"]
    assert {"sims", "seed", "powers", "missing"} <= plain.keys()


def test_power_of_nothing(tmp_path: Path, demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a graded run there is nothing to simulate from."""
    rows = [demo.row(outcome="unusable")]
    demo.write(tmp_path / "r", rows, demo.sweep(rows))
    assert main(["power", str(tmp_path / "r")]) == 5
    assert "no run of an implementation or review task is graded" in capsys.readouterr().err
