"""What the tests of faults share: scripts of a model for the small suite, by the run that they are for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.suite import Suite, runs, until

WORKS = """\
model: claude-scripted
provider: anthropic
{match}
turns:
  - text: I will do it.
    tools: [{{name: bash, input: {{command: "echo done > a.txt"}}}}]
    usage: {{ordinary_input: 100, cache_read_input: 20, cache_write_input: 10, output: 7}}
    {fault}
  - text: Done.
    usage: {{ordinary_input: 50, cache_read_input: 0, cache_write_input: 0, output: 3}}
"""
SUBJECT = "--wfbench-subject=mini:replay/faults"


def script(suite: Suite, name: str, match: str = "", fault: str = "") -> None:
    """Write a cassette whose model does the task in two turns; ``fault`` is what happens at the first."""
    text = WORKS.format(match=match and f"match: {{{match}}}", fault=fault)
    suite.put(f"cases/cassettes/faults/{name}.yaml", text)


def kill_child(pid: int, words: str) -> psutil.Process:
    """Kill -9 the one process below another whose command line holds some words."""
    (victim,) = [one for one in psutil.Process(pid).children(recursive=True) if runs(one, words)]
    os.kill(victim.pid, signal.SIGKILL)
    return victim


def await_agent(pid: int, rows: Path, after: int) -> None:
    """Wait until so many rows are written, and an agent after them runs and waits for its answer."""
    until(lambda: rows.exists() and rows.read_text().count("\n") >= after, 90, f"{after} rows")
    until(lambda: any(runs(one, "mini_main") for one in psutil.Process(pid).children(recursive=True)), 60, "an agent")
    pytest.importorskip("minisweagent")
