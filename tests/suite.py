"""A suite small enough to run in a second, and what is needed to watch its processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

SH = 'sh "$WFBENCH_ORACLE_ROOT/check.sh"'
ORACLE = f"oracle: {{command: {json.dumps(SH)}, files: [{{source: check.sh, target: check.sh}}], results: exit}}"


def cases(tasks: str, session: str, others: str) -> str:
    """A case file of tasks over the tiny repository, with these timeouts."""
    return f"""\
kind: implementation
defaults:
  repo: tiny
  verify: grep -q done a.txt
  timeout: {{session: {session}, setup: {others}, verify: {others}, oracle: {others}}}
  {ORACLE}
tasks:
{tasks}"""


TASKS = """\
  - id: finish
    class: trivial
    tags: [quick]
    prompt: Make a.txt say done.
    reference: finish.patch
  - id: other
    prompt: Make a.txt say done, too.
  - id: dear
    expensive: true
    prompt: Make a.txt say done, slowly.
"""
CASES = cases(TASKS, "40s", "20s")

ARMS = """\
arms:
  baseline:
    default: true
    sessions: [{name: work}]
  second:
    sessions: [{name: work}]
  planned:
    sessions:
      - {name: plan, prompt: "Plan: {task}", produces: "plans/*.md"}
      - {name: work, prompt: "Work from {plan}: {task}"}
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

# Each reads the prompt, where it cares which task it is at: that of `other` ends in "too.".
SCRIPTS = {
    "solve.sh": "#!/bin/sh\necho done > a.txt\n",
    "half.sh": "#!/bin/sh\necho 'done, nearly' > a.txt\n",
    "idle.sh": "#!/bin/sh\nexit 0\n",
    "broken.sh": "#!/bin/sh\necho 'it broke' >&2\nexit 3\n",
    "either.sh": '#!/bin/sh\ncase "$(cat)" in *too.*) exit 3;; esac\necho done > a.txt\n',
    "stuck.sh": '#!/bin/sh\ncase "$(cat)" in *too.*) sleep 4321;; esac\necho done > a.txt\n',
}

FILES: Mapping[str, str] = {
    "cases/tiny.cases.yaml": CASES,
    "cases/arms.yaml": ARMS,
    "cases/tiny/a.txt": "open\n",
    "cases/tiny/test_never_collected.py": "def test_never(): raise AssertionError\n",
    "cases/tiny/.claude/skills/work/SKILL.md": "---\nname: work\n---\nDo the work.\n",
    "oracles/check.sh": CHECK,
    "oracles/finish.patch": PATCH,
    **SCRIPTS,
}

# Writes down where the sweep keeps what must not outlive it.
PLACES = """\
import json
from pathlib import Path

from pytest_wfbench.stash import SWEEP


def pytest_sessionstart(session):
    if SWEEP in session.config.stash and not hasattr(session.config, "workerinput"):
        seat = session.config.stash[SWEEP].seat
        gateway = [str(seat.gateway.socket.parents[1])] if seat.gateway else []
        Path("places.json").write_text(json.dumps([str(seat.runtime), str(seat.scratch), *gateway]))
"""


def plant(root: Path, files: Mapping[str, str]) -> None:
    """Write files below a directory."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@dataclass(frozen=True)
class Suite:
    """A case file with three tasks, its repository, oracle and scripted agents, below pytester's directory."""

    pytester: pytest.Pytester
    monkeypatch: pytest.MonkeyPatch
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.pytester.path

    def put(self, name: str, text: str) -> None:
        """Write one file below the suite."""
        plant(self.path, {name: text})

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace one piece of a file, which must be there."""
        path = self.path / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def arguments(self, *arguments: str, agent: str) -> list[str]:
        subject = ("--wfbench-subject", f"command:{agent}") if agent else ()
        return ["cases", "-p", "no:randomly", *subject, *arguments]

    def run(self, *arguments: str, agent: str = "solve.sh", **environment: str) -> pytest.RunResult:
        """Run pytest on the suite in a process of its own."""
        for name, value in environment.items():
            self.monkeypatch.setenv(name, value)
        return self.pytester.runpytest_subprocess(*self.arguments(*arguments, agent=agent))

    def start(self, *arguments: str, agent: str) -> subprocess.Popen[bytes]:
        """Start pytest on the suite as the leader of a process group, and do not wait for it."""
        self.put("conftest.py", PLACES)
        with (self.path / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *self.arguments(*arguments, agent=agent)],
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def output(self) -> str:
        """What a started pytest printed."""
        return (self.path / "output.txt").read_text()

    def places(self) -> list[Path]:
        """Directories that a started sweep keeps for its own life."""
        return [Path(name) for name in json.loads((self.path / "places.json").read_text())]

    @property
    def sweeps(self) -> list[Path]:
        """Every sweep's directory, oldest first."""
        return sorted((self.path / "results").glob("wfbench-*"))

    @property
    def results(self) -> Path:
        """The newest sweep's directory."""
        return (self.path / "results" / "latest").resolve()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the newest sweep."""
        path = self.results / "results.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def sweep(self) -> dict[str, Any]:
        """The manifest of the newest sweep."""
        manifest: dict[str, Any] = json.loads((self.results / "sweep.json").read_text())
        return manifest


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for a condition, and return what it gave; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)
    return value


def processes_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Every process below a process, and itself."""
    try:
        top = psutil.Process(process.pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended."""
    return [process for process in processes if lives(process)]


def lives(process: psutil.Process) -> bool:
    """Whether a process has not ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def runs(process: psutil.Process, words: str) -> bool:
    """Whether the words stand in a process's command line."""
    try:
        return words in " ".join(process.cmdline())
    except psutil.Error:
        return False
