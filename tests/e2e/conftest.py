"""Whole sweeps over the shipped cases, each run once for all tests that look at it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from pytest_wfbench.agents.base import AgentUnavailable
from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import read_rows
from tests.suite import cases

ROOT = Path(__file__).parents[2]
# One task, with time for the slowest agent on a busy machine.
CASES = cases("  - {id: finish, prompt: Make a.txt say done.}\n", "5m", "1m")
# Fixtures take the variable away, for the sake of the sweeps that tests run.
IN_CI = bool(os.environ.get("CI"))
LEFT_OUT = ("CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST")


@dataclass(frozen=True)
class Ended:
    """A sweep that is over: its exit status, what it printed, and its results directory."""

    status: int
    output: str
    results: Path

    @property
    def rows(self) -> tuple[Row, ...]:
        return read_rows(self.results).rows

    @property
    def events(self) -> list[Event]:
        """Every upstream request, as the gateway wrote it."""
        return [Event.model_validate_json(line) for line in (self.results / "usage.jsonl").read_text().splitlines()]


def sweep(results: Path, *arguments: str, cwd: Path = ROOT) -> Ended:
    """Run pytest with these arguments in a process of its own, with its results below a directory."""
    env = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    argv = [sys.executable, "-m", "pytest", *arguments, f"--wfbench-results={results}", "-p", "no:cacheprovider"]
    ran = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    return Ended(ran.returncode, ran.stdout + ran.stderr, (results / "latest").resolve())


@contextmanager
def started(results: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start many cells of the shipped cases, in a process group of their own that does not outlive the block."""
    env = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    selection = ("cases", "-k", "rounding and baseline", "--wfbench-runs=50", f"--wfbench-results={results}")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *selection, "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ended]:
    """Run a named sweep once a session, whichever worker asks first; the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def run(name: str, *arguments: str) -> Ended:
        place, done = shared / f"sweep-{name}", shared / f"sweep-{name}.txt"
        with FileLock(shared / f"sweep-{name}.lock"):
            if not done.exists():
                ended = sweep(place, *arguments)
                done.write_text(f"{ended.status}\n{ended.output}")
        status, _, output = done.read_text().partition("\n")
        return Ended(int(status), output, (place / "latest").resolve())

    return run


def require_agent(name: str, directory: Path = ROOT, model: str = "replay/demo") -> None:
    """Skip where an agent is not installed; in CI that is a failure, for a skipped check proves nothing."""
    try:
        get_agent(name).find(model, directory)
    except AgentUnavailable as error:
        if IN_CI:
            pytest.fail(f"CI is set and {name} is missing: {error}")
        pytest.skip(str(error))
