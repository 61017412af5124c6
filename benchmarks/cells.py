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


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_suite(root, tasks=1)
        wall = seconds_of(lambda: _pytest(root, f"--wfbench-runs={RUNS}"))
        lines = (root / "results" / "latest" / "results.jsonl").read_text().splitlines()
        timings = [json.loads(line)["timings"] for line in lines]
    yield Figure("harness overhead per cell, median", median_ms([t["overhead"] for t in timings]), "ms", bound=250)
    for phase in ("workspace", "session", "verify", "oracle"):
        yield Figure(f"  {phase}, median", median_ms([t[phase] for t in timings]), "ms")
    yield Figure("wall clock per no-op cell, start-up included", wall / RUNS * 1000, "ms")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_suite(root, tasks=MANY // 100)
        few = seconds_of(lambda: _pytest(root, "--collect-only", "-q", "--wfbench-runs=1"))
        many = seconds_of(lambda: _pytest(root, "--collect-only", "-q", "--wfbench-runs=100"))
    yield Figure(f"collection of {MANY:,} cells", many, "s")
    yield Figure(f"  per cell, beyond {MANY // 100} cells", (many - few) / (MANY - MANY // 100) * 1000, "ms")


def _pytest(root: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pytest", "cases", "--wfbench-subject", "command:agent.sh", "-q", *arguments]
    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=True)
