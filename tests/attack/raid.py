"""Hostile agents, run as cells of a real sweep, and what they got hold of."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.suite import FILES

LEFT_OUT = ("CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST")
LOOT = "loot.txt"
# What every hostile script begins with: `loot WORDS` notes in the workspace what it got hold of.
PROLOGUE = f'#!/bin/bash\nloot() {{ printf "%s\\n" "$*" >> {LOOT}; }}\n'


@dataclass(frozen=True)
class Raid:
    """A sweep that is over, with one cell (task ``finish``) a script; ``path`` is the suite's directory."""

    path: Path
    status: int
    output: str

    @property
    def results(self) -> Path:
        return (self.path / "results" / "latest").resolve()

    def rows(self) -> dict[str, dict[str, Any]]:
        """The newest rows by the script's name."""
        lines = (self.results / "results.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return {row["requested_model"].removesuffix(".sh"): row for row in found}

    def artifact(self, script: str, name: str) -> str:
        """A file that a script's cell left: ``patch.diff``, ``stderr.txt``, ``transcript.jsonl``; empty if none."""
        path = self.results / "cells" / self.rows()[script]["cell_id"] / "1" / name
        return path.read_text(errors="replace") if path.exists() else ""

    def loot(self, script: str) -> list[str]:
        """The lines that a script noted in the workspace, as the harness's own patch shows them."""
        lines: list[str] = []
        inside = False
        for line in self.artifact(script, "patch.diff").splitlines():
            if line.startswith("diff --git "):
                inside = line.endswith(f" b/{LOOT}")
            elif inside and line.startswith("+") and not line.startswith("+++"):
                lines.append(line[1:])
        return lines


@dataclass(frozen=True)
class Raiders:
    """Scripts, and the suite they are let loose on; ``files`` are laid over the small suite of ``tests/suite.py``.

    ``{path}`` in a value of the environment stands for the suite's directory.
    """

    scripts: Mapping[str, str]
    arm: str = "baseline"
    files: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, path: Path) -> Raid:
        """Run one sweep below an empty directory."""
        scripts = {f"{name}.sh": PROLOGUE + text for name, text in self.scripts.items()}
        for name, text in {**FILES, **scripts, **self.files}.items():
            place = path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        subjects = [f"--wfbench-subject=command:{name}" for name in scripts]
        added = {name: value.replace("{path}", str(path)) for name, value in self.environment.items()}
        env = {name: value for name, value in os.environ.items() if name not in LEFT_OUT} | added
        argv = [sys.executable, "-m", "pytest", "cases", "-k", "finish", f"--wfbench-arms={self.arm}", *subjects]
        ran = subprocess.run(
            [*argv, "--wfbench-outage-limit=0", "-p", "no:cacheprovider", *self.arguments],
            cwd=path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        )  # fmt: skip
        return Raid(path, ran.returncode, ran.stdout.decode(errors="replace"))


def python(name: str, source: str) -> str:
    """Shell words that put a program at a path."""
    return f"base64 -d > {name} <<'END'\n{base64.encodebytes(source.encode()).decode()}END\n"
