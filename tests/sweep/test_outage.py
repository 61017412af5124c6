"""The outage stop, counted over every process of a sweep."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_wfbench.sweep.outage import COUNT, LOCK, OutageGuard

NOTE = """\
import sys
from pathlib import Path
from pytest_wfbench.sweep.outage import OutageGuard
guard = OutageGuard(Path(sys.argv[1]), int(sys.argv[2]))
print("ready", flush=True)
while not Path(sys.argv[1], "go").exists():
    pass
for _ in range(int(sys.argv[3])):
    guard.note("unusable", "provider-error: gone")
"""

HOLD = """\
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""

FOREVER = NOTE.replace("range(int(sys.argv[3]))", "iter(int, 1)")


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


class TestHalt:
    @pytest.mark.parametrize("kind", ["outage", "budget"])
    def test_why(self, tmp_path: Path, kind: Any) -> None:
        """Who stopped the sweep first says why, in one word and a sentence of any number of lines."""
        guard = OutageGuard(tmp_path, 5)
        assert guard.halted() is None
        guard.halt("gone\nfor good", kind)
        guard.halt("too late")
        assert OutageGuard(tmp_path, 5).halted() == (kind, "gone\nfor good")
        assert guard.cause() == "gone\nfor good"


class TestCounting:
    def test_row_of_unusable(self, tmp_path: Path) -> None:
        """The sweep stops at the limit, and says what the last one was."""
        guard = OutageGuard(tmp_path, 3)
        for number in range(2):
            guard.note("unusable", f"no {number}")
            assert guard.cause() is None
        guard.note("unusable", "provider-error: 503")
        assert guard.cause() == "3 consecutive unusable cells, the last one: provider-error: 503"

    @pytest.mark.parametrize("graded", ["pass", "miss"])
    def test_graded_ends_the_row(self, tmp_path: Path, graded: str) -> None:
        """A graded cell, good or bad, begins the count anew."""
        guard = OutageGuard(tmp_path, 2)
        for outcome in ("unusable", graded, "unusable"):
            guard.note(outcome, "x")
        assert guard.cause() is None
        guard.note("unusable", "x")
        assert guard.cause()

    def test_one_incident_counts_once(self, tmp_path: Path) -> None:
        """Cells in a row that the same incident ended are one; before and after others they count again."""
        guard = OutageGuard(tmp_path, 4)
        for incident in ("lost", "lost", "", "lost", "lost"):
            guard.note("unusable", "x", incident)
        assert guard.cause() is None
        guard.note("unusable", "x")
        assert guard.cause()

    def test_skipped_says_nothing(self, tmp_path: Path) -> None:
        """A skipped cell neither ends the row nor adds to it."""
        guard = OutageGuard(tmp_path, 2)
        for outcome in ("unusable", "skipped"):
            guard.note(outcome, "x")
        assert guard.cause() is None
        guard.note("unusable", "x")
        assert guard.cause()

    def test_off(self, tmp_path: Path) -> None:
        """A limit of 0 switches it off."""
        guard = OutageGuard(tmp_path, 0)
        for _ in range(20):
            guard.note("unusable", "x")
        assert guard.cause() is None

    def test_stays_stopped(self, tmp_path: Path) -> None:
        """Once stopped it stays so, with its first cause, whatever cells that ran still say."""
        guard = OutageGuard(tmp_path, 1)
        guard.note("unusable", "first")
        guard.note("pass", "")
        guard.note("unusable", "second")
        assert guard.cause() == "1 consecutive unusable cells, the last one: first"

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
    @given(st.lists(st.sampled_from(["pass", "miss", "unusable", "skipped"]), max_size=12), st.integers(1, 3))
    def test_any_course(self, tmp_path_factory: pytest.TempPathFactory, outcomes: list[str], limit: int) -> None:
        """It stops exactly when so many cells in a row, skipped ones aside, were unusable."""
        guard = OutageGuard(tmp_path_factory.mktemp("guard"), limit)
        for outcome in outcomes:
            guard.note(outcome, "x")
        letters = "".join(outcome[0] for outcome in outcomes if outcome != "skipped")
        assert (guard.cause() is not None) == ("u" * limit in letters)


class TestProcesses:
    def test_counts_over_workers(self, tmp_path: Path) -> None:
        """Cells of several workers that end at the same moment are all counted, each once."""
        workers = [start(NOTE, tmp_path, 301, 100) for _ in range(3)]
        assert [worker.stdout and worker.stdout.readline() for worker in workers] == ["ready\n"] * 3
        (tmp_path / "go").touch()
        assert [worker.wait(60) for worker in workers] == [0, 0, 0]
        guard = OutageGuard(tmp_path, 301)
        assert ((tmp_path / COUNT).read_text(), guard.cause()) == ("300", None)
        guard.note("unusable", "last")
        assert guard.cause() == "301 consecutive unusable cells, the last one: last"

    def test_killed_with_the_lock(self, tmp_path: Path) -> None:
        """A worker that is killed while it holds the lock keeps nobody waiting."""
        holder = start(HOLD, tmp_path / LOCK)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
        before = time.monotonic()
        OutageGuard(tmp_path, 1).note("unusable", "x")
        assert time.monotonic() - before < 5
        assert OutageGuard(tmp_path, 1).cause()

    def test_killed_while_counting(self, tmp_path: Path) -> None:
        """A worker that is killed at any instant leaves a count that reads."""
        (tmp_path / "go").touch()
        for wait in (0.25, 0.3, 0.35, 0.4):
            worker = start(FOREVER, tmp_path, 10**9)
            deadline = time.monotonic() + 20
            while not (tmp_path / COUNT).exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(wait)
            worker.send_signal(signal.SIGKILL)
            worker.wait(10)
            assert int((tmp_path / COUNT).read_text()) > 0
            OutageGuard(tmp_path, 10**9).note("unusable", "x")
