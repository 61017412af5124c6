"""A cell's workspace: its set-up by the size of the repository, against a clone of the same repository."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, median_ms, seconds_of
from benchmarks.suites import write_files, write_history
from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
from pytest_wfbench.sandbox.identity import cache_directory, choose_identity, private_directory
from pytest_wfbench.sandbox.spec import Command
from pytest_wfbench.workspace.overlay import open_workspace
from pytest_wfbench.workspace.repository import resolve
from pytest_wfbench.workspace.startstate import make_start
from pytest_wfbench.workspace.template import make_template

SIZES = (50, 5000)
ROUNDS = 31
CLONES = 5


def measure() -> Iterator[Figure]:
    medians = {}
    for size in SIZES:
        opened, clones = _one_size(size)
        medians[size] = statistics.median(opened)
        yield Figure(f"workspace set-up and first mount, {size} files, median", median_ms(opened), "ms", bound=50)
        yield Figure(f"git clone --no-local --no-hardlinks, {size} files, median", median_ms(clones), "ms")
    ratio = statistics.median(clones) / medians[SIZES[-1]]
    yield Figure(f"clone / workspace, {SIZES[-1]} files", ratio, "times", bound=20, at_least=True)
    yield Figure("set-up, 5,000 files / 50 files", medians[SIZES[1]] / medians[SIZES[0]], "times")


def _one_size(files: int) -> tuple[list[float], list[float]]:
    identity = choose_identity()
    cache = cache_directory(identity)
    scratch = private_directory(cache, "bench", identity)
    with tempfile.TemporaryDirectory() as name:
        repository = Path(name) / "repository"
        write_files(repository, files)
        write_history(repository, 10)
        sandbox = make_bubblewrap()
        template = make_template(resolve(repository, "main"), (), cache, sandbox, identity)
        start = make_start(template, sandbox=sandbox, identity=identity, cache=cache)
        opened = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            workspace = open_workspace(start, scratch, identity)
            took = time.perf_counter() - began
            ended = sandbox.run(Command(("/bin/true",), workspace.session_mounts(), 20))
            opened.append(took + ended.setup_seconds)
            workspace.remove()
        clones = [seconds_of(lambda: _clone(repository, Path(name) / "clone")) for _ in range(CLONES)]
    return opened, clones


def _clone(repository: Path, target: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--no-local", "--no-hardlinks", str(repository), str(target)], check=True)
    shutil.rmtree(target)
