"""The harness's own cost of a cell: all that is not agent, verify or oracle command."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, median_ms, seconds_of
from benchmarks.suites import write_suite

RUNS = 40
MANY = 10_000
BOUND_MS = 120
PHASES = ("session", "what was changed", "verify", "oracle")

# Written beside the cases: notes what each sandbox cost beyond its command, in the order of a cell's phases.
NOTES = """\
import json
import time

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap

run = Bubblewrap.run


def noted(self, command):
    began = time.perf_counter()
    ended = run(self, command)
    whole = time.perf_counter() - began
    with open("notes.jsonl", "a") as stream:
        stream.write(json.dumps([command.argv[0], whole, ended.seconds]) + chr(10))
    return ended


def pytest_collection_finish(session):
    Bubblewrap.run = noted
"""


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_suite(root, tasks=1)
        working = (root / "agent.sh").read_text()
        (root / "agent.sh").write_text("#!/bin/sh\ntrue\n")
        _pytest(root, f"--wfbench-runs={RUNS}")
        yield Figure("harness overhead per cell, agent `true`, median", _overhead(root), "ms", BOUND_MS)
        (root / "agent.sh").write_text(working)
        wall = seconds_of(lambda: _pytest(root, f"--wfbench-runs={RUNS}"))
        yield Figure(
            "harness overhead per cell with a changed file, verified and judged, median", _overhead(root), "ms"
        )
        yield from _phases(root)
    yield Figure("wall clock per no-op cell, start-up included", wall / RUNS * 1000, "ms")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_suite(root, tasks=MANY // 100)
        few = seconds_of(lambda: _pytest(root, "--collect-only", "-q", "--wfbench-runs=1"))
        many = seconds_of(lambda: _pytest(root, "--collect-only", "-q", "--wfbench-runs=100"))
    yield Figure(f"collection of {MANY:,} cells", many, "s")
    yield Figure(f"  per cell, beyond {MANY // 100} cells", (many - few) / (MANY - MANY // 100) * 1000, "ms")


def _overhead(root: Path) -> float:
    lines = (root / "results" / "latest" / "results.jsonl").read_text().splitlines()
    return median_ms([json.loads(line)["timings"]["overhead"] for line in lines])


def _phases(root: Path) -> Iterator[Figure]:
    """Run the cells again with a note of each sandbox; the harness's own program counts as overhead whole."""
    (root / "conftest.py").write_text(NOTES)
    _pytest(root, f"--wfbench-runs={RUNS}")
    notes = [json.loads(line) for line in (root / "notes.jsonl").read_text().splitlines()]
    costs: dict[str, list[float]] = {phase: [] for phase in PHASES}
    # The preflight's runs come first.
    for number, (_, whole, command) in enumerate(notes[-RUNS * len(PHASES) :]):
        phase = PHASES[number % len(PHASES)]
        costs[phase].append(whole if phase == "what was changed" else whole - command)
    lines = (root / "results" / "latest" / "results.jsonl").read_text().splitlines()
    overheads = [json.loads(line)["timings"]["overhead"] for line in lines]
    for phase, seconds in costs.items():
        yield Figure(f"  {phase}, median", median_ms(seconds), "ms")
    rest = [whole - sum(parts) for whole, *parts in zip(overheads, *costs.values(), strict=True)]
    yield Figure("  everything else, median", median_ms(rest), "ms")


def _pytest(root: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pytest", "cases", "--wfbench-subject", "command:agent.sh", "-q", *arguments]
    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=True)
