"""Disks that fill up in the middle of a sweep: results, scratch, cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_wfbench.evidence.store import read_rows, read_sweep
from pytest_wfbench.space import Reserve, require_room
from tests.faults.room import run_on_small_disk
from tests.suite import Suite

# Fills the disk of the results when the second cell has run and its row is about to be written.
FILL = """\
import os
from pathlib import Path

import pytest

SPARE = os.environ.get("SPARE") == "none"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    if call.when != "call" or "-2]" not in item.name:
        return
    disk = Path(os.environ["DISK"])
    if SPARE:
        for reserve in disk.rglob(".reserve"):
            reserve.unlink()
    with (disk / "filler").open("wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            pass
"""
GREEDY = "#!/bin/sh\ncat > /dev/null\necho done > a.txt\nhead -c 30000000 /dev/zero > big\nexit 0\n"
ARGUMENTS = ("--wfbench-subject=command:solve.sh", "-k", "finish", "--wfbench-runs=4")


def no_soup(output: str) -> bool:
    """Whether nothing of Python's own shows."""
    return "Traceback" not in output and "INTERNALERROR" not in output


@pytest.mark.slow
class TestResults:
    @pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "workers"])
    def test_full(self, suite: Suite, workers: tuple[str, ...]) -> None:
        """The row that finds no space is written to what was set aside, the sweep ends there, sealed, in one line."""
        suite.put("conftest.py", FILL)
        ended = run_on_small_disk(suite.path, suite.path / "results", "3m", [*ARGUMENTS, *workers])
        directory = (suite.path / "results.kept" / "latest").resolve()
        assert ended.status == 1, ended.output
        assert no_soup(ended.output), ended.output
        runs = [row.run for row in read_rows(directory).rows]
        assert {1, 2} <= set(runs) if not workers else 2 in runs
        assert len(runs) < 4 or workers
        sweep = read_sweep(directory)
        assert (sweep.run_status, sweep.exit_status) == ("aborted", 1)
        assert sweep.stop is not None
        cause = sweep.stop.cause
        assert "results/wfbench-" in cause
        assert "No space left on device. Free some space there, then run the sweep again" in cause
        assert "lost" not in cause
        assert " ".join(cause.split()) in " ".join(ended.output.split())
        assert (directory / "report.md").exists()
        assert not (directory / ".reserve").exists()

    def test_nothing_left(self, suite: Suite) -> None:
        """Where not even the reserve is left, the lost row is named, and what was written stays readable."""
        suite.put("conftest.py", FILL)
        disk = suite.path / "results"
        ended = run_on_small_disk(suite.path, disk, "3m", ARGUMENTS, {"SPARE": "none"})
        directory = (suite.path / "results.kept" / "latest").resolve()
        assert ended.status == 1, ended.output
        assert no_soup(ended.output), ended.output
        assert "The row of finish.v0.baseline.command-solve.sh.r2" in " ".join(ended.output.split())
        rows = read_rows(directory)
        assert ([row.run for row in rows.rows], rows.torn) == ([1], None)
        assert read_sweep(directory).run_status == "running"
        for verb in ("report", "comment"):
            ran = subprocess.run(
                [sys.executable, "-m", "pytest_wfbench.cli", verb, directory], capture_output=True, text=True
            )
            assert (ran.returncode, ran.stderr) == (0, "")

    def test_full_from_the_start(self, suite: Suite) -> None:
        """A results directory without room for the end of a sweep starts none."""
        ended = run_on_small_disk(suite.path, suite.path / "results", "512k", ARGUMENTS)
        assert ended.status == 1, ended.output
        assert "No space left on device. Free some space there in --wfbench-results" in " ".join(ended.output.split())
        assert no_soup(ended.output)


@pytest.mark.slow
class TestCache:
    def test_agent_fills_the_scratch(self, suite: Suite) -> None:
        """A cell whose machine had no space left is unusable, with what is known of it, and no other one starts."""
        suite.put("greedy.sh", GREEDY)
        cache = suite.path / "cache"
        arguments = ["--wfbench-subject=command:greedy.sh", "-k", "finish", "--wfbench-runs=3"]
        ended = run_on_small_disk(suite.path, cache, "12m", arguments, {"WFBENCH_CACHE_DIR": str(cache)})
        assert ended.status == 1, ended.output
        assert no_soup(ended.output), ended.output
        (row,) = suite.rows()
        assert (row["outcome"], row["kind"]) == ("unusable", "infra-error"), row
        assert "No space left on device" in row["reason"]
        assert row["timings"]["session"] > 0
        assert row["timings"]["verify"] is None
        sweep = suite.sweep()
        assert [entry["kind"] for entry in sweep["skipped"] if entry["task"] == "finish"] == ["outage-stop"] * 2
        assert "Free some space there" in sweep["stop"]["cause"]
        assert not list((suite.path / "cache.kept").rglob("cell-*"))

    def test_no_room_for_a_template(self, suite: Suite) -> None:
        """A snapshot that does not fit is a problem of one line, with the remedy, before anything is run."""
        (suite.path / "cases" / "tiny" / "large.bin").write_bytes(os.urandom(2 << 20))
        cache = suite.path / "cache"
        ended = run_on_small_disk(suite.path, cache, "3m", ARGUMENTS, {"WFBENCH_CACHE_DIR": str(cache)})
        assert ended.status == 4, ended.output
        assert no_soup(ended.output), ended.output
        told = " ".join(ended.output.split())
        assert "No space left on device" in told
        assert "Free some space in the cache directory, or name another in WFBENCH_CACHE_DIR" in told
        assert not list((suite.path / "cache.kept").rglob("record.json"))


class TestAppend:
    def test_nothing_torn(self, tmp_path: Path) -> None:
        """A line that does not fit leaves nothing of itself, in rows and in usage.jsonl, and the log says why."""
        program = (
            "import resource, sys\nfrom pathlib import Path\nfrom types import SimpleNamespace\n"
            "from pytest_wfbench.files import append_line\nfrom pytest_wfbench.gateway.events import EventLog\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "log = EventLog(Path(sys.argv[1], 'usage.jsonl'))\n"
            "event = SimpleNamespace(model_dump_json=lambda: '{' + 'e' * 298 + '}')\n"
            "assert log.failed is None\n"
            "for _ in range(5): log.write(event)\n"
            "log.close()\n"
            "print(log.failed)\n"
            "try:\n    for _ in range(5): append_line(Path(sys.argv[1], 'rows'), 'r' * 300)\n"
            "except OSError as error: print(error.strerror)\n"
        )
        ran = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
        logged, said = ran.stdout.splitlines()
        assert logged.startswith(f"{tmp_path} cannot be written: File too large")
        assert said == "File too large"
        assert [len(line) for line in (tmp_path / "usage.jsonl").read_text().splitlines()] == [300] * 3
        assert [len(line) for line in (tmp_path / "rows").read_text().splitlines()] == [300] * 3
        assert (tmp_path / "rows").read_text().endswith("\n")


class TestReserve:
    def test_given_back_once(self, tmp_path: Path) -> None:
        """Space set aside is really taken, and is given back once."""
        reserve = Reserve(tmp_path)
        assert not reserve.give_back()
        reserve.take(1 << 20)
        (held,) = tmp_path.iterdir()
        assert held.stat().st_blocks * 512 >= 1 << 20
        assert (reserve.give_back(), reserve.give_back(), list(tmp_path.iterdir())) == (True, False, [])

    def test_room(self, tmp_path: Path) -> None:
        """A disk with less than is asked for counts as full."""
        require_room(tmp_path)
        with pytest.raises(OSError, match="No space left"):
            require_room(tmp_path, floor=1 << 62)
