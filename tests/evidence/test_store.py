"""Rows and manifest on disk."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_wfbench.evidence.store import EvidenceError, RowWriter, collect_runs, read_rows, read_sweep, write_sweep

WRITER = """
import sys
from pathlib import Path
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import RowWriter
writer, row = RowWriter(Path(sys.argv[1])), Row.model_validate_json(sys.argv[2])
for attempt in range(1, 1_000_000):
    writer.append(row.model_copy(update={"attempt": attempt}))
    print(attempt, flush=True)
"""


class TestRows:
    def test_round_trip(self, demo: ModuleType, tmp_path: Path) -> None:
        """What was appended is read back, in the order of the file."""
        demo.write(tmp_path)
        assert list(read_rows(tmp_path).rows) == demo.rows()

    def test_no_rows_yet(self, tmp_path: Path) -> None:
        """A directory without rows is a sweep that has not finished a cell."""
        assert read_rows(tmp_path).rows == ()

    def test_newest_attempt_counts(self, demo: ModuleType) -> None:
        """The highest attempt speaks for a cell, and the earlier ones stay with it, whatever the order of rows."""
        rows = [demo.row(attempt=n, outcome=o) for n, o in ((1, "unusable"), (2, "miss"), (3, "pass"))]
        for _ in range(5):
            random.shuffle(rows)
            (run,) = collect_runs(rows)
            assert (run.row.outcome, [row.attempt for row in run.attempts]) == ("pass", [1, 2, 3])

    def test_duplicates(self, demo: ModuleType, tmp_path: Path) -> None:
        """An attempt that is there twice is named, and which twin counts does not depend on their order."""
        twins = [demo.row(cost_usd=1.0), demo.row(cost_usd=2.0)]
        demo.write(tmp_path, twins)
        assert read_rows(tmp_path).duplicates == (f"{twins[0].cell_id} attempt 1",)
        assert collect_runs(twins) == collect_runs(twins[::-1])


class TestTornLine:
    @pytest.fixture
    def torn(self, demo: ModuleType, tmp_path: Path) -> Path:
        demo.write(tmp_path, [demo.row(run=1)])
        with (tmp_path / "results.jsonl").open("a") as stream:
            stream.write(demo.row(run=2).to_json()[:100])
        return tmp_path

    def test_reported(self, torn: Path) -> None:
        """An unfinished last line is reported and not counted."""
        rows = read_rows(torn)
        assert len(rows.rows) == 1
        assert rows.torn == "results.jsonl line 2: unfinished last line of 100 bytes, not counted"

    def test_zeroes_after_a_power_cut(self, demo: ModuleType, tmp_path: Path) -> None:
        """A file system that filled the end with zeroes hides no row and adds none."""
        demo.write(tmp_path, [demo.row(run=1)])
        with (tmp_path / "results.jsonl").open("ab") as stream:
            stream.write(b"\0" * 512)
        assert len(read_rows(tmp_path).rows) == 1

    def test_dropped_on_append(self, demo: ModuleType, torn: Path) -> None:
        """The next row takes the place of the unfinished one."""
        RowWriter(torn).append(demo.row(run=3))
        rows = read_rows(torn)
        assert ([row.run for row in rows.rows], rows.torn) == ([1, 3], None)

    def test_only_the_line_end_is_missing(self, demo: ModuleType, tmp_path: Path) -> None:
        """A whole row that lacks only its line end counts and survives the next append."""
        path = demo.write(tmp_path, [demo.row(run=1)]) / "results.jsonl"
        path.write_bytes(path.read_bytes()[:-1])
        assert len(read_rows(tmp_path).rows) == 1
        RowWriter(tmp_path).append(demo.row(run=2))
        assert [row.run for row in read_rows(tmp_path).rows] == [1, 2]

    def test_kill_9(self, demo: ModuleType, tmp_path: Path) -> None:
        """Every row whose append returned is there after kill -9."""
        argv = [sys.executable, "-c", WRITER, str(tmp_path), demo.row().to_json()]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            for line in process.stdout:
                if int(line) == 20:
                    process.send_signal(signal.SIGKILL)
                    break
            said = [20, *(int(line) for line in process.stdout if line.endswith("\n"))]
        assert {row.attempt for row in read_rows(tmp_path).rows} >= set(range(1, max(said) + 1))


class TestErrors:
    def test_missing_directory(self, tmp_path: Path) -> None:
        """A missing directory is one line with the remedy."""
        with pytest.raises(EvidenceError) as caught:
            read_sweep(tmp_path / "none")
        assert (
            str(caught.value) == f"{tmp_path}/none: no such directory. Name a results directory, such as results/latest"
        )

    def test_no_manifest(self, tmp_path: Path) -> None:
        """A directory that is no results directory says which file it lacks."""
        with pytest.raises(EvidenceError, match=r"sweep\.json: no such file\. Name a results directory"):
            read_sweep(tmp_path)

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            ('{"schema_version": 1', "Invalid JSON"),
            ('{"schema_version": 1}', "cell_id: Field required"),
            ('{"schema_version": 2}', "schema_version: Input should be 1"),
        ],
    )
    def test_bad_row(self, demo: ModuleType, tmp_path: Path, line: str, fault: str) -> None:
        """A line that is no row names file, line, field and remedy, on one line."""
        path = demo.write(tmp_path, [demo.row()]) / "results.jsonl"
        path.write_text(line + "\n" + path.read_text())
        with pytest.raises(EvidenceError) as caught:
            read_rows(tmp_path)
        text = str(caught.value)
        assert text.startswith(f"{path}:1: {fault}")
        assert "Run the sweep again" in text
        assert "\n" not in text

    def test_a_link_is_not_followed(self, demo: ModuleType, tmp_path: Path) -> None:
        """A results file that is a link is refused."""
        demo.write(tmp_path / "real", [demo.row()])
        (tmp_path / "fake").mkdir()
        (tmp_path / "fake" / "results.jsonl").symlink_to(tmp_path / "real" / "results.jsonl")
        with pytest.raises(EvidenceError, match="a link, not a regular file"):
            read_rows(tmp_path / "fake")

    def test_unknown_key(self, demo: ModuleType, tmp_path: Path) -> None:
        """A manifest of another shape is refused, not half read."""
        demo.write(tmp_path, [demo.row()])
        text = (tmp_path / "sweep.json").read_text()
        (tmp_path / "sweep.json").write_text(text.replace('"sweep_id"', '"sweep_name"'))
        with pytest.raises(EvidenceError, match="sweep_id: Field required"):
            read_sweep(tmp_path)


class TestSweep:
    def test_round_trip(self, demo: ModuleType, tmp_path: Path) -> None:
        """The manifest is read back as it was written, arms and options included."""
        sweep = demo.demo_sweep()
        write_sweep(tmp_path, sweep)
        assert read_sweep(tmp_path) == sweep
        assert (tmp_path / "sweep.json").read_text() == read_sweep(tmp_path).to_json()

    def test_options_without_a_type_are_kept(self, demo: ModuleType, tmp_path: Path) -> None:
        """Options that neither verdict nor gate read are kept as they were given."""
        write_sweep(tmp_path, demo.sweep([], options={"include_expensive": True, "promotion_min_runs": 2}))
        options = read_sweep(tmp_path).options
        assert (options.promotion_min_runs, options.model_extra) == (2, {"include_expensive": True})
