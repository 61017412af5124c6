"""The controller's memory over the number of cells. Each worker runs one; the rest have its row as theirs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.suites import write_suite

RUNS = 2000
MARKS = (500, 1000, 2000)
# Counts cells as their rows come, and notes what the controller holds by then.
PROBE = """\
import gc, json, os
from pathlib import Path

import psutil

from pytest_wfbench import collect

SEEN = []
ROWS = []
run_cell = collect.run_cell


def run(cell, *given):
    if not ROWS:
        ROWS.append(run_cell(cell, *given))
    return ROWS[0].model_copy(update={"cell_id": cell.id, "run": cell.run})


collect.run_cell = run


def pytest_runtest_logreport(report):
    if report.when == "teardown" and "PYTEST_XDIST_WORKER" not in os.environ:
        SEEN.append(None)
        if len(SEEN) in {marks}:
            gc.collect()
            with Path("held.jsonl").open("a") as stream:
                stream.write(json.dumps([len(SEEN), psutil.Process().memory_info().rss]) + "\\n")
"""


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_suite(root, tasks=1)
        (root / "conftest.py").write_text(PROBE.replace("{marks}", repr(set(MARKS))))
        command = [sys.executable, "-m", "pytest", "cases", "-q", "-n", "2", "--wfbench-subject=command:agent.sh"]
        command.append(f"--wfbench-runs={RUNS}")
        subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        held = dict(json.loads(line) for line in (root / "held.jsonl").read_text().splitlines())
    for cells in MARKS:
        yield Figure(f"controller's resident memory after {cells:,} cells", held[cells] / (1 << 20), "MiB")
    grown = (held[MARKS[-1]] - held[MARKS[0]]) / (MARKS[-1] - MARKS[0])
    yield Figure("  growth per cell", grown / 1024, "KiB", bound=16)
