"""Workers, and how a sweep ends when it is killed or interrupted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_wfbench.evidence.store import read_rows
from tests.suite import Suite, living, processes_of, runs, until

pytestmark = pytest.mark.slow

STUCK = "sleep 4321"
WAIT = 40.0


def stuck_cell(suite: Suite, process: subprocess.Popen[bytes], rows: int) -> list[psutil.Process]:
    """Wait until so many rows are written and a cell hangs in its session; return all processes of the sweep."""

    def hanging() -> list[psutil.Process]:
        assert process.poll() is None, suite.output()
        found = processes_of(process)
        ready = (suite.path / "results" / "latest").exists() and len(suite.rows()) >= rows
        return found if ready and any(runs(one, STUCK) for one in found) else []

    found: list[psutil.Process] = until(hanging, WAIT, "a cell that hangs")
    return found


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The xdist workers of a sweep; none without."""
    return [one for one in psutil.Process(process.pid).children() if runs(one, "sys.stdin.readline")]


def mounts() -> set[str]:
    """What is mounted on this machine by a harness."""
    return {line for line in Path("/proc/self/mounts").read_text().splitlines() if "wfb" in line}


class TestWorkerCrash:
    def test_killed_worker(self, suite: Suite) -> None:
        """A worker that is killed gives its cell an unusable row, and the sweep goes on with another."""
        process = suite.start("-n", "2", "--wfbench-runs=2", agent="stuck.sh")
        for number in (1, 2):
            everything = stuck_cell(suite, process, number)
            (victim, *_) = [
                w for w in workers_of(process) if any(runs(one, STUCK) for one in w.children(recursive=True))
            ]
            asleep = [one for one in everything if runs(one, STUCK) and victim in one.parents()]
            victim.kill()
            until(lambda: not living(asleep), 5, "the end of the killed worker's sandbox")  # noqa: B023
        assert process.wait(WAIT) == 1
        rows = {(row["task"], row["run"]): (row["outcome"], row["kind"]) for row in suite.rows()}
        assert rows == {
            ("finish", 1): ("pass", None),
            ("finish", 2): ("pass", None),
            ("other", 1): ("unusable", "worker-crash"),
            ("other", 2): ("unusable", "worker-crash"),
        }
        assert "unusable, worker-crash: the worker process that ran the cell died" in suite.output()
        assert suite.sweep()["run_status"] == "complete"
        assert not any(place.exists() for place in suite.places())


class TestInterrupt:
    @pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "workers"])
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
    def test_interrupted(self, suite: Suite, number: signal.Signals, workers: tuple[str, ...]) -> None:
        """Ctrl-C and SIGTERM keep the finished rows, write the partial report, leave nothing, and exit 2 in 15 s.

        So it is also where workers do not answer any more: those of a SIGTERM are suspended.
        """
        before = mounts()
        process = suite.start(*workers, agent="stuck.sh")
        everything = stuck_cell(suite, process, 1)
        if number is signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            for worker in workers_of(process):
                worker.suspend()
            process.send_signal(number)
        began = time.monotonic()
        assert process.wait(40) == 2, suite.output()
        assert time.monotonic() - began < 15
        until(lambda: not living(everything), 5, f"the end of {everything}")
        assert [(row["task"], row["outcome"]) for row in suite.rows()] == [("finish", "pass")]
        assert "INCOMPLETE" in (suite.results / "report.md").read_text().splitlines()[0]
        sweep = suite.sweep()
        assert (sweep["run_status"], sweep["exit_status"], sweep["stop"]["kind"]) == ("aborted", 2, "interrupted")
        assert not any(place.exists() for place in suite.places())
        assert mounts() <= before


class TestKilled:
    def test_before_the_first_cell(self, suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sweep that is killed while it waits for a model's sign of life has left a comment that says INCOMPLETE."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            monkeypatch.setenv("LITELLM_PROXY_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
            monkeypatch.setenv("LITELLM_PROXY_API_KEY", "any")
            process = suite.start("--wfbench-subject=mini:litellm/team-model", agent="")
            until(lambda: (suite.path / "results" / "latest").exists(), WAIT, "a results directory")
            comment = suite.path / "results" / "latest" / "comment.md"
            until(comment.exists, 5, "its comment")
            process.kill()
            process.wait()
        assert "### INCOMPLETE" in comment.read_text()
        assert suite.rows() == []

    def test_killed_controller(self, suite: Suite) -> None:
        """After kill -9 of pytest nothing runs after 5 s, the rows read, and the next sweep clears its scratch."""
        before = mounts()
        process = suite.start("-n", "2", agent="stuck.sh")
        everything = stuck_cell(suite, process, 1)
        process.kill()
        process.wait()
        until(lambda: not living(everything), 5, f"the end of {everything}")
        assert mounts() <= before
        killed = suite.results
        assert [(row.task, row.outcome) for row in read_rows(killed).rows] == [("finish", "pass")]
        places = suite.places()
        assert suite.run("-k", "finish").ret == 0
        assert not any(place.exists() for place in places)
        status = suite.pytester.run(sys.executable, "-m", "pytest_wfbench.cli", "report", killed)
        assert status.ret == 0
        assert "INCOMPLETE" in status.outlines[0]
