"""``wfbench baseline``: filing, listing, showing, and choosing for a directory."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.cli import main

STORE = ["--store", "filed"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def results(demo: ModuleType, day: int, tokens: int = 10_000, **changes: Any) -> str:
    """A sweep of one question on a day of November, by its directory."""
    rows = [demo.row("a", "baseline", task_kind="question", usage={"total_input": tokens, "output": 0})]
    about = {"sweep_id": f"202611{day:02}T000000Z-abcdef", "started_at": f"2026-11-{day:02}T00:00:00.000Z"}
    demo.write(Path(f"day-{day}"), rows, demo.sweep(rows, **{**about, **changes}))
    return f"day-{day}"


def test_the_round(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Filed, listed, shown, and used by a later sweep's comment."""
    assert main(["baseline", "list", *STORE]) == 0
    assert "nothing is filed in" in capsys.readouterr().out
    for day, name, kind in ((1, "main", "main"), (2, "main", "main"), (3, "topic", "branch")):
        assert main(["baseline", "add", results(demo, day), "--as", name, "--kind", kind, *STORE]) == 0
    capsys.readouterr()
    assert main(["baseline", "list", *STORE]) == 0
    assert [line.split(" · ")[:4] for line in capsys.readouterr().out.splitlines()] == [
        ["branch topic", "20261103T000000Z-abcdef", "PASS", "1/1 pass"],
        ["main main", "20261102T000000Z-abcdef", "PASS", "1/1 pass"],
        ["main main", "20261101T000000Z-abcdef", "PASS", "1/1 pass"],
    ]
    assert main(["baseline", "list", "--json", *STORE]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == ["topic", "main", "main"]
    assert main(["baseline", "show", "main", *STORE]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["sweep_id"], shown["entries"][0]["tokens"]) == ("20261102T000000Z-abcdef", 10_000)
    later = results(demo, 9, tokens=12_000)
    assert main(["baseline", "use", later, "--branch", "topic", *STORE]) == 0
    assert "compared with branch topic" in capsys.readouterr().out
    assert main(["comment", later]) == 0
    assert "Δ +20.0 % tokens against branch topic" in capsys.readouterr().out
    assert main(["report", later]) == 0
    assert "compared with branch topic" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"run_status": "running"}, "INCOMPLETE"), ({"stop": {"kind": "preflight", "cause": "c"}}, "BROKEN")],
)
def test_refused(demo: ModuleType, capsys: pytest.CaptureFixture[str], changes: Any, said: str) -> None:
    """What is not sound is refused with status 1, and nothing is made."""
    assert main(["baseline", "add", results(demo, 1, **changes), "--as", "x", *STORE]) == 1
    assert f"not filed: sweep 20261101T000000Z-abcdef is {said}" in capsys.readouterr().err
    assert not Path("filed").exists()


def test_another_suite(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no baseline shares a task, an old choice goes, and that is said: status 5."""
    rows = [demo.row("other", "baseline")]
    demo.write(Path("other"), rows, demo.sweep(rows, sweep_id="20261101T000000Z-abcdef"))
    assert main(["baseline", "add", "other", "--as", "main", "--kind", "main", *STORE]) == 0
    later = results(demo, 9)
    (Path(later) / "baseline.json").write_text("{}")
    assert main(["baseline", "use", later, *STORE]) == 5
    assert "shares a task" in capsys.readouterr().err
    assert not (Path(later) / "baseline.json").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["add", "day-1", "--as", "", *STORE], 1, "name: String should have at least 1 character"),
        (["add", "day-1", "--as", "x" * 201, *STORE], 1, "at most 200 characters"),
        (["add", "day-1", "--as", "x", "--store", "day-1/sweep.json"], 4, "is a file"),
        (["add", "day-1", "--as", "x", "--store", "git:day-1"], 4, "no git repository"),
        (["add", "nowhere", "--as", "x", *STORE], 4, "no such directory"),
        (["show", "main", *STORE], 5, "nothing is filed as main"),
        (["add", "day-1", "--as", "x"], 4, "--store"),
    ],
)
def test_bad_input(
    demo: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, said: str
) -> None:
    """Each fault is one line with its status."""
    results(demo, 1)
    assert main(["baseline", *arguments]) == status
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1


def test_spoiled_choice(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline.json that is none is an error with its place, and no traceback."""
    later = results(demo, 9)
    (Path(later) / "baseline.json").write_text("{}")
    assert main(["comment", later]) == 4
    assert "baseline.json: no baseline that this version reads" in capsys.readouterr().err
