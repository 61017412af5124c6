"""Shared by all tests: pytester, and a suite small enough to run in a second."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

CASES = """\
kind: implementation
defaults:
  repo: tiny
  verify: grep -q done a.txt
  timeout: {session: 20s, setup: 20s, verify: 20s, oracle: 20s}
tasks:
  - id: finish
    class: trivial
    tags: [quick]
    prompt: Make a.txt say done.
    oracle:
      command: sh "$WFBENCH_ORACLE_ROOT/check.sh"
      files: [{source: check.sh, target: check.sh}]
      results: exit
    reference: finish.patch
  - id: other
    prompt: Make a.txt say done, too.
    oracle:
      command: sh "$WFBENCH_ORACLE_ROOT/check.sh"
      files: [{source: check.sh, target: check.sh}]
      results: exit
  - id: dear
    expensive: true
    prompt: Make a.txt say done, slowly.
    oracle:
      command: sh "$WFBENCH_ORACLE_ROOT/check.sh"
      files: [{source: check.sh, target: check.sh}]
      results: exit
"""

ARMS = """\
arms:
  baseline:
    default: true
    sessions: [{name: work}]
  second:
    sessions: [{name: work}]
  workflow_direct:
    skills: [work]
    sessions: [{name: work, skill: work, prompt: "Use the work skill. {task}"}]
  candidate_workflow_direct:
    candidate_of: workflow_direct
    overlay: true
    skills: [work]
    sessions: [{name: work, skill: work, prompt: "Use the work skill. {task}"}]
"""

CHECK = """\
test "$(cat a.txt)" = done
"""

PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-open
+done
"""

SCRIPTS = {
    "solve.sh": "#!/bin/sh\necho done > a.txt\n",
    "half.sh": "#!/bin/sh\necho 'done, nearly' > a.txt\n",
    "idle.sh": "#!/bin/sh\nexit 0\n",
    "broken.sh": "#!/bin/sh\necho 'it broke' >&2\nexit 3\n",
}


@dataclass(frozen=True)
class Suite:
    """A case file with three tasks, its repository, oracle and scripted agents, below pytester's directory."""

    pytester: pytest.Pytester

    @property
    def path(self) -> Path:
        return self.pytester.path

    def run(self, *arguments: str, agent: str = "solve.sh", **environment: str) -> pytest.RunResult:
        """Run pytest on the suite in a process of its own."""
        os.environ.update(environment)
        subject = ("--wfbench-subject", f"command:{agent}") if agent else ()
        return self.pytester.runpytest_subprocess("cases", "-p", "no:randomly", *subject, *arguments)

    @property
    def results(self) -> Path:
        """The newest sweep's directory."""
        return (self.path / "results" / "latest").resolve()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the newest sweep."""
        return [json.loads(line) for line in (self.results / "results.jsonl").read_text().splitlines()]

    def sweep(self) -> dict[str, Any]:
        """The manifest of the newest sweep."""
        manifest: dict[str, Any] = json.loads((self.results / "sweep.json").read_text())
        return manifest


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite that needs no model."""
    for name in ("CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    root = pytester.path
    files = {
        "cases/tiny.cases.yaml": CASES,
        "cases/arms.yaml": ARMS,
        "cases/tiny/a.txt": "open\n",
        "cases/tiny/test_never_collected.py": "def test_never(): raise AssertionError\n",
        "cases/tiny/.claude/skills/work/SKILL.md": "---\nname: work\n---\nDo the work.\n",
        "oracles/check.sh": CHECK,
        "oracles/finish.patch": PATCH,
        **SCRIPTS,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Suite(pytester)
