"""Suites made for a measurement: a repository of any size, tasks that do nothing, as many cells as asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

ARMS = "arms:\n  baseline: {default: true, sessions: [{name: work}]}\n"


def write_files(repository: Path, files: int) -> None:
    """Fill a directory with small source files, a hundred to a directory."""
    for number in range(files):
        path = repository / f"package{number // 100:03d}" / f"module{number:05d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""Module {number}."""\n\n\ndef value() -> int:\n    return {number}\n' * 5)


def write_history(repository: Path, commits: int) -> None:
    """Make a directory a git repository with some commits."""
    _git(repository, "init", "-q", "-b", "main")
    for number in range(commits):
        (repository / "CHANGES").write_text(f"change {number}\n" * 20)
        _git(repository, "add", "-A")
        _git(repository, "commit", "-q", "-m", f"change {number}")


def write_suite(root: Path, tasks: int, files: int = 20) -> Path:
    """Write a suite whose agent, verify and oracle do next to nothing; return the directory of its cases."""
    cases = root / "cases"
    write_files(cases / "repository", files)
    (root / "oracles").mkdir(parents=True, exist_ok=True)
    (root / "oracles" / "check.sh").write_text("true\n")
    (cases / "arms.yaml").write_text(ARMS)
    (root / "agent.sh").write_text("#!/bin/sh\necho changed > changed.txt\n")
    lines = ["kind: implementation", "defaults:", "  repo: repository", "  verify: 'true'", "  prompt: Do nothing."]
    lines += ["  oracle:", '    command: sh "$WFBENCH_ORACLE_ROOT/check.sh"', "    results: exit"]
    lines += ["    files: [{source: check.sh, target: check.sh}]", "tasks:"]
    lines += [f"  - id: task-{number:05d}" for number in range(tasks)]
    (cases / "noop.cases.yaml").write_text("\n".join(lines) + "\n")
    return cases


def _git(repository: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    subprocess.run(["git", *identity, *arguments], cwd=repository, check=True, stdout=subprocess.DEVNULL)
