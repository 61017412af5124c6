"""Ten thousand reviews of a hundred findings against a hundred labels: CPU seconds and memory, each by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure

MANY = 10_000
# How many files the findings lie in, and on how many lines each: few, and all findings may speak of all labels.
SHAPES = {"over 10 files": (10, 2000), "in one file": (1, 400), "on a dozen lines": (1, 12)}
PROBE = """\
import json, random, resource, sys, time
from pytest_wfbench.scoring.artifact import WEIGHTS, Artifact, Finding
from pytest_wfbench.scoring.labels import Label
from pytest_wfbench.scoring.review import score_review

files, lines, many = map(int, sys.argv[1:])
chance, severities = random.Random(1), list(WEIGHTS)

def place(first, last):
    line = chance.randint(1, lines)
    return {"path": f"{chance.randrange(files)}.py", first: line, last: line + chance.randint(0, 3),
            "severity": chance.choice(severities), "category": chance.choice("abcd")}

prose = {"scenario": "s", "evidence": "e", "recommendation": "r", "blocking": True}
seconds = 0.0
for _ in range(many):
    findings = [Finding(id=str(n), **place("line", "end_line"), **prose) for n in range(100)]
    labels = [Label(id=str(n), **place("line_start", "line_end")) for n in range(100)]
    artifact = Artifact(schema_version=1, verdict="comment", findings=findings)
    began = time.process_time()
    score_review(artifact, labels)
    seconds += time.process_time() - began
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def measure() -> Iterator[Figure]:
    for name, (files, lines) in SHAPES.items():
        command = [sys.executable, "-c", PROBE, str(files), str(lines), str(MANY)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        seconds, peak = json.loads(ran.stdout)
        yield Figure(f"scoring {MANY:,} reviews {name}", seconds, "s of CPU", bound=60)
        yield Figure("  resident memory at its peak", peak / (1 << 20), "GiB", bound=1)
