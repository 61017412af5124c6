"""Gate and report in processes of their own: the same rows give the same bytes, in any order and any surroundings."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

SURROUNDINGS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "COLUMNS": "40"},
)


def derived(directory: Path, surroundings: dict[str, str]) -> dict[str, bytes]:
    """What both verbs print and write."""
    told = {}
    for verb in ("gate", "report"):
        ran = subprocess.run(
            [sys.executable, "-m", "pytest_wfbench.cli", verb, directory.name],
            cwd=directory.parent,
            env=os.environ | surroundings,
            capture_output=True,
        )
        assert ran.returncode in (0, 1), ran.stderr
        told[verb] = ran.stdout
    names = ("promotion.json", "report.md")
    return told | {name: (directory / name).read_bytes() for name in names}


def test_same_bytes(tmp_path: Path, demo: ModuleType) -> None:
    """Neither the order of rows, nor hashes, language or time zone change a byte."""
    found = []
    for number, surroundings in enumerate(SURROUNDINGS):
        directory = tmp_path / str(number) / "results"
        rows = demo.rows()
        demo.write(directory, rows, demo.demo_sweep())
        lines = (directory / "results.jsonl").read_text().splitlines(keepends=True)
        shuffled = random.Random(number).sample(lines, len(lines))
        assert shuffled != lines
        (directory / "results.jsonl").write_text("".join(shuffled))
        found.append(derived(directory, surroundings))
    assert len(found[0]["report.md"]) > 1000
    assert found[0] == found[1]
