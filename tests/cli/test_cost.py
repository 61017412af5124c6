"""``wfbench cost``: old evidence, priced again."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.cli import main
from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.evidence.store import read_sweep, write_sweep

MODEL = "claude-sonnet-4-5-20250929"
USAGE = {"input_tokens": 1000, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 100}


def an_event(cell_id: str, number: int, **changes: Any) -> str:
    base: dict[str, Any] = {
        "sweep_id": "s", "cell_id": cell_id, "session": "work", "call_id": str(number), "status": "success",
        "answered_model": MODEL, "provider": "anthropic", "wire": "anthropic-messages", "native_usage": USAGE,
        "started_at": "2026-11-30T12:00:00.000Z", "completed_at": "2026-11-30T12:00:01.000Z", "ttft_ms": 1.0,
    }  # fmt: skip
    return Event.model_validate(base | changes).model_dump_json() + "\n"


@pytest.fixture
def results(demo: ModuleType, tmp_path: Path) -> Path:
    """Two cells of one arm and one of another, a request each, of which the judge's is no part of the arm's cost."""
    rows = [demo.row(arm="workflow", run=1), demo.row(arm="workflow", run=2), demo.row(arm="baseline", run=1)]
    directory: Path = demo.write(tmp_path / "results", rows)
    lines = [an_event(row.cell_id, number) for number, row in enumerate(rows)]
    lines.append(an_event(rows[2].cell_id, 9, session="judge"))
    (directory / "usage.jsonl").write_text("".join(lines))
    return directory


def prices(tmp_path: Path, **models: float) -> Path:
    path = tmp_path / "prices.json"
    entries = {name: {"input_cost_per_token": price, "output_cost_per_token": price} for name, price in models.items()}
    path.write_text(json.dumps(entries))
    return path


def cost(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    assert main(["cost", *map(str, argv), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {line["arm"]: (line["recorded"], line["repriced"], line["unknown"]) for line in found["lines"]}


class TestCost:
    def test_another_table(self, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tokens of usage.jsonl are priced by the table that is named; the directory stays as it is."""
        before = {path.name: path.read_bytes() for path in results.iterdir() if path.is_file()}
        found = cost(capsys, results, "--prices", prices(tmp_path, **{MODEL: 0.001}))
        assert found == {"workflow": (2.0, pytest.approx(2.2), 0), "baseline": (1.0, pytest.approx(1.1), 0)}
        assert {path.name: path.read_bytes() for path in results.iterdir() if path.is_file()} == before

    def test_bundled_table(self, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Without a table the bundled one prices: 3 and 15 dollars a million tokens."""
        assert cost(capsys, results)["baseline"] == (1.0, pytest.approx(0.0045), 0)

    def test_every_attempt(self, demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Of a cell that was asked again all attempts were paid for, on both sides; it is one cell."""
        rows = [demo.row(attempt=n, cost_usd=cost) for n, cost in ((1, 0.25), (2, 1.0))]
        directory: Path = demo.write(tmp_path / "results", rows)
        (directory / "usage.jsonl").write_text("".join(an_event(rows[0].cell_id, number) for number in range(2)))
        table = prices(tmp_path, **{MODEL: 0.001})
        assert cost(capsys, directory, "--prices", table) == {rows[0].arm: (1.25, pytest.approx(2.2), 0)}
        assert main(["cost", str(directory), "--prices", str(table)]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(rows[0].arm)]
        assert line.split()[2:] == ["1", "$1.25", "$2.20"]

    def test_an_attempt_of_unknown_cost(
        self, demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Where one attempt's cost is unknown, the cell's recorded cost is."""
        rows = [demo.row(attempt=1, cost_usd=None), demo.row(attempt=2, cost_usd=1.0)]
        directory: Path = demo.write(tmp_path / "results", rows)
        (directory / "usage.jsonl").write_text(an_event(rows[0].cell_id, 1))
        assert cost(capsys, directory)[rows[0].arm] == (None, pytest.approx(0.0045), 0)

    def test_unknown_model(self, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A model that the table does not have costs nothing known, and is named."""
        path = prices(tmp_path, other=1.0)
        assert cost(capsys, results, "--prices", path)["workflow"] == (2.0, None, 2)
        assert main(["cost", str(results), "--prices", str(path)]) == 0
        out = capsys.readouterr().out
        assert f"no price in the table: {MODEL}" in out
        assert "unknown for 3 cells" in out

    @pytest.mark.parametrize("price", ["0.001", -1, None, True])
    def test_no_number(self, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], price: object) -> None:
        """A model whose price is no number of 0 or more has none, and is named likewise."""
        path = tmp_path / "prices.json"
        path.write_text(json.dumps({MODEL: {"input_cost_per_token": 0.001, "output_cost_per_token": price}}))
        assert main(["cost", str(results), "--prices", str(path)]) == 0
        assert f"no price in the table: {MODEL}" in capsys.readouterr().out

    def test_unknown_usage(
        self, demo: ModuleType, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A cell with a gap in its usage, or a call that never ended, has no known cost."""
        cell = demo.row(arm="baseline", run=1).cell_id
        sweep = read_sweep(results)
        call = OpenCall(cell_id=cell, session="work", call_id="x")
        write_sweep(results, sweep.model_copy(update={"open_calls": (call,)}))
        assert cost(capsys, results)["baseline"] == (1.0, None, 1)

    def test_torn_line(self, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A line that a kill cut short is reported, and the others are read."""
        path = results / "usage.jsonl"
        path.write_text(path.read_text() + '{"kind": "gener')
        assert cost(capsys, results)["baseline"][1] == pytest.approx(0.0045)
        assert main(["cost", str(results)]) == 0
        assert "usage.jsonl line 5: cut short after 15 bytes" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "said"),
        [("[]", "not a price table"), ("{", "cannot be read as a price table"), (None, "cannot be read")],
    )
    def test_bad_table(
        self, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
    ) -> None:
        """A table that does not read is a usage error that names it."""
        path = tmp_path / "prices.json"
        if text is not None:
            path.write_text(text)
        assert main(["cost", str(results), "--prices", str(path)]) == 4
        assert said in capsys.readouterr().err

    def test_no_event(self, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A line that is JSON and no event is an error with its place."""
        (results / "usage.jsonl").write_text('{"kind": 1}\n')
        assert main(["cost", str(results)]) == 4
        assert "usage.jsonl:1: " in capsys.readouterr().err
