"""Ctrl-C, SIGTERM and kill -9 at every step of a sweep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.suite import Suite, living, processes_of, runs, until

pytestmark = pytest.mark.slow

STUCK = "sleep 4321"
WAIT = 40.0
# Steps that hang, by what makes them: a line of the case file, or a program of the suite's own.
VERIFY = ("  verify: grep -q done a.txt\n", f"  verify: {STUCK}\n")
SETUP = ("  verify: grep", f"  setup: {STUCK}\n  verify: grep")
COLLECTING = f"import subprocess\ndef pytest_collection_modifyitems(): subprocess.run({STUCK.split()!r})\n"
TEMPLATE = (
    "from pytest_wfbench.workspace import template\n"
    f"template._POPULATE = 'git init -q . && {STUCK}\\n' + template._POPULATE\n"
)
START = (
    "import subprocess\nfrom pytest_wfbench.workspace import startstate\n"
    f"startstate._seal = lambda *given: subprocess.run({STUCK.split()!r})\n"
)


@pytest.fixture
def cache(suite: Suite) -> str:
    """A cache directory of the test's own."""
    place = str(suite.path / "cache")
    suite.monkeypatch.setenv("WFBENCH_CACHE_DIR", place)
    return place


def hang(suite: Suite, step: str) -> None:
    """Make a step of every cell, or of the sweep, hang."""
    if step == "verify":
        suite.edit("cases/tiny.cases.yaml", *VERIFY)
    elif step == "setup":
        suite.edit("cases/tiny.cases.yaml", *SETUP)
    elif step == "oracle":
        suite.put("oracles/check.sh", f"{STUCK}\n")
    else:
        suite.put("cases/conftest.py", {"collecting": COLLECTING, "template": TEMPLATE, "start": START}[step])


def hanging(suite: Suite, process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Wait until something hangs; return all processes of the sweep."""

    def found() -> list[psutil.Process]:
        assert process.poll() is None, suite.output()
        everything = processes_of(process)
        return everything if any(runs(one, STUCK) for one in everything) else []

    everything: list[psutil.Process] = until(found, WAIT, "a step that hangs")
    return everything


def ended(suite: Suite, process: subprocess.Popen[bytes], everything: list[psutil.Process]) -> None:
    """Expect the end of an interrupted sweep: in 15 s, with exit 2, nothing running, and nothing of Python's shown."""
    assert process.wait(15) == 2, suite.output()
    until(lambda: not living(everything), 5, f"the end of {everything}")
    assert "Traceback" not in suite.output(), suite.output()
    assert "INTERNALERROR" not in suite.output()


class TestSteps:
    @pytest.mark.parametrize("step", ["collecting", "template", "setup", "verify", "oracle"])
    def test_terminated(self, suite: Suite, cache: str, step: str) -> None:
        """SIGTERM ends a sweep at any of its steps, and the next one is none the worse for it."""
        hang(suite, step)
        process = suite.start("-k", "finish", agent="solve.sh")
        everything = hanging(suite, process)
        process.send_signal(signal.SIGTERM)
        ended(suite, process, everything)
        assert "SIGTERM, ending the sweep" in suite.output()
        assert bool(suite.sweeps) == (step not in ("collecting", "template"))
        if suite.sweeps:
            assert (suite.rows(), suite.sweep()["stop"]["kind"]) == ([], "interrupted")
            assert not any(place.exists() for place in suite.places())
        if step == "template":
            (suite.path / "cases" / "conftest.py").unlink()
            assert suite.run("-k", "finish").ret == 0


class TestAgain:
    @pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "workers"])
    def test_impatient(self, suite: Suite, workers: tuple[str, ...]) -> None:
        """Signals that come again and again during the shutdown change nothing: rows, manifest, report and exit 2."""
        process = suite.start(*workers, agent="stuck.sh")
        until(lambda: suite.sweeps and len(suite.rows()) == 1, WAIT, "a row")
        everything = hanging(suite, process)
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT) * 5:
            if process.poll() is None:
                os.killpg(process.pid, number)
                time.sleep(0.04)
        ended(suite, process, everything)
        assert [(row["task"], row["outcome"]) for row in suite.rows()] == [("finish", "pass")]
        sweep = suite.sweep()
        assert (sweep["run_status"], sweep["exit_status"], sweep["stop"]["kind"]) == ("aborted", 2, "interrupted")
        assert "INCOMPLETE" in (suite.results / "report.md").read_text().splitlines()[0]
        assert not any(place.exists() for place in suite.places())


class TestPublishing:
    @pytest.mark.parametrize("step", ["template", "start"])
    def test_killed(self, suite: Suite, cache: str, step: str) -> None:
        """Kill -9 while a snapshot or a start state is made leaves a cache that the next sweep makes good of."""
        suite.edit("cases/tiny.cases.yaml", "  verify: grep", "  setup: echo made > made.txt\n  verify: grep")
        hang(suite, step)
        process = suite.start("-k", "finish", agent="solve.sh")
        everything = hanging(suite, process)
        process.kill()
        process.wait()
        mine = [one for one in everything if not runs(one, STUCK) or step == "template"]
        until(lambda: not living(mine), 5, f"the end of {mine}")
        for stray in living(everything):
            stray.kill()
        (suite.path / "cases" / "conftest.py").unlink()
        result = suite.run("-k", "finish")
        assert result.ret == 0, result.outlines
        (row,) = suite.rows()
        assert (row["outcome"], row["churn"]["files"]) == ("pass", 1)
        shelves = suite.path / "cache" / "shelves-bwrap"
        assert not [path for path in shelves.glob("*/.*") if path.is_dir()]


class TestKilledAlone:
    def test_without_workers(self, suite: Suite) -> None:
        """After kill -9 of a pytest without workers nothing runs after 5 s, the rows read, and all is cleared."""
        process = suite.start(agent="stuck.sh")
        until(lambda: suite.sweeps and len(suite.rows()) == 1, WAIT, "a row")
        everything = hanging(suite, process)
        process.kill()
        process.wait()
        until(lambda: not living(everything), 5, f"the end of {everything}")
        assert [(row["task"], row["outcome"]) for row in suite.rows()] == [("finish", "pass")]
        places = suite.places()
        ran = subprocess.run([sys.executable, "-m", "pytest_wfbench.cli", "report", suite.results], capture_output=True)
        assert ran.returncode == 0
        assert b"INCOMPLETE" in ran.stdout.splitlines()[0]
        assert suite.run("-k", "finish").ret == 0
        assert not any(place.exists() for place in places)
