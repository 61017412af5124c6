"""Gate and report on a hundred thousand rows: CPU seconds and memory, each in a process of its own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure

TASKS, RUNS = 16_667, 3
ARMS = ("workflow", "candidate_workflow")
PROBE = """\
import json, resource, sys, time
from pytest_wfbench.cli import main
main([sys.argv[1], sys.argv[2]])
used = resource.getrusage(resource.RUSAGE_SELF)
sys.stderr.write(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


def write_rows(directory: Path) -> int:
    """Write the evidence of a sweep with many tasks, and return how many rows it has."""
    from pytest_wfbench.evidence.store import write_sweep
    from tests.data import demo_sweep

    chance = random.Random(1)
    rows = [
        demo_sweep.row(f"t{task}", arm, run, cost_usd=chance.uniform(0.8, 1.2) * (1 if arm == ARMS[0] else 0.93))
        for task in range(TASKS)
        for arm in ARMS
        for run in range(1, RUNS + 1)
    ]
    (directory / "results.jsonl").write_text("".join(f"{row.to_json()}\n" for row in rows))
    write_sweep(directory, demo_sweep.sweep(rows))
    return len(rows)


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        count = _written_apart(name)
        for verb in ("gate", "report"):
            command = [sys.executable, "-c", PROBE, verb, name]
            ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, text=True)
            seconds, peak = json.loads(ran.stderr.splitlines()[-1])
            yield Figure(f"wfbench {verb} of {count:,} rows", seconds, "s of CPU", bound=60)
            yield Figure("  resident memory at its peak", peak / (1 << 20), "GiB", bound=1)


def _written_apart(directory: str) -> int:
    """A process that was as large would pass its own peak on to those that it starts."""
    script = "import sys; from pathlib import Path; from benchmarks.rows import write_rows"
    command = [sys.executable, "-c", f"{script}; print(write_rows(Path(sys.argv[1])))", directory]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
