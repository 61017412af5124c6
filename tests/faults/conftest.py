"""What the tests of faults share: scripts of a model for the small suite, by the run that they are for."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil

from tests.attack.conftest import raid
from tests.suite import Suite, runs, until

__all__ = ["raid"]

WORKS = """\
model: claude-scripted
provider: anthropic
{match}
turns:
  - text: I will do it.
    tools: [{{name: {tool}, input: {{command: "{command}"}}}}]
    usage: {{ordinary_input: 100, cache_read_input: 20, cache_write_input: 10, output: 7}}
    {fault}
  - text: Done.
    usage: {{ordinary_input: 50, cache_read_input: 0, cache_write_input: 0, output: 3}}
"""
# How long an agent takes, at most, from its start to its first request.
SPOKEN = 2.0
SUBJECT = "--wfbench-subject=mini:replay/faults"


def script(
    suite: Suite,
    name: str,
    match: str = "",
    fault: str = "",
    tool: str = "bash",
    command: str = "echo done > a.txt",
) -> None:
    """Write a cassette whose model runs a command in the first of two turns; ``fault`` is what happens at it."""
    text = WORKS.format(match=match and f"match: {{{match}}}", fault=fault, tool=tool, command=command)
    suite.put(f"cases/cassettes/faults/{name}.yaml", text)


def kill_child(pid: int, words: str) -> psutil.Process:
    """Kill -9 the one process below another whose command line holds some words."""
    (victim,) = [one for one in psutil.Process(pid).children(recursive=True) if runs(one, words)]
    os.kill(victim.pid, signal.SIGKILL)
    return victim


def await_agents(pid: int, rows: Path, after: int, agents: int = 1) -> None:
    """Wait until so many rows are written, and so many agents run at once and wait for an answer."""

    def waiting() -> bool:
        written = rows.read_text().count("\n") if rows.exists() else 0
        below = psutil.Process(pid).children(recursive=True)
        return written >= after and sum(runs(one, "/opt/wfbench/mini {") for one in below) >= agents

    until(waiting, 90, f"{after} rows and {agents} agents")
    time.sleep(SPOKEN)
