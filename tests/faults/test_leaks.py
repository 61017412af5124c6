"""What many cells leave behind: nothing, and a controller that is no larger than before."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.suite import Suite

pytestmark = pytest.mark.slow

CELLS = 60
# What pytest itself keeps of a test is most of it.
BLOCKS = 60
# Notes after each cell what the process holds. Blocks of memory are counted, since bytes of it go up and down.
PROBE = """\
import gc
import json
import sys
from pathlib import Path

import psutil

ROW = "wfbench_row"
ME = psutil.Process()


def holds_row(held):
    return type(held).__name__ == "Row" or (type(held).__name__ == "TestReport" and ROW in vars(held))


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        gc.collect()
        note = {
            "blocks": sys.getallocatedblocks(),
            "rows": sum(holds_row(held) for held in gc.get_objects()),
            "fds": ME.num_fds(),
            "threads": ME.num_threads(),
            "children": len(ME.children(recursive=True)),
        }
        with Path("notes.jsonl").open("a") as stream:
            stream.write(json.dumps(note) + "\\n")
"""


def abstract_sockets() -> set[str]:
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1] for line in lines if line.split()[-1].startswith("@") and "wfb" in line}


def cgroups() -> set[str]:
    top = Path("/sys/fs/cgroup")
    return {str(path) for path in top.rglob("*wfb*")} if top.is_dir() else set()


def strangers(mark: str) -> list[str]:
    """Other processes that stand in a directory, name it, or have mounts of it, as everything of a sandbox has."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        if int(place.name) != os.getpid():
            seen = [_read(place / "cmdline"), _read(place / "mountinfo")]
            if any(mark in text for text in seen):
                found.append(f"{place.name}: {seen[0]}")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


class TestMany:
    def test_nothing_is_left(self, suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Many cells leave no process, mount, socket, control group, temporary file or scratch of the sweep."""
        temporary = tmp_path_factory.mktemp("temporary")
        cache = suite.path / "cache"
        mounts, sockets = harness_mounts(), abstract_sockets()
        groups = cgroups()
        environment = {"TMPDIR": str(temporary), "WFBENCH_CACHE_DIR": str(cache)}
        suite.put("conftest.py", PROBE)
        result = suite.run("-k", "finish", f"--wfbench-runs={CELLS}", **environment)
        assert result.ret == 0
        assert len(suite.rows()) == CELLS
        assert strangers(str(suite.path)) == []
        assert harness_mounts() <= mounts
        assert abstract_sockets() <= sockets
        assert cgroups() <= groups
        assert [path.name for path in temporary.iterdir()] == []
        assert [str(path) for path in (cache / "cells").iterdir()] == []
        assert not [path.name for path in (cache / "shelves-bwrap" / "templates").iterdir() if path.name[0] == "."]
        assert {path.name.partition("-")[0] for path in suite.results.iterdir()} <= {
            "cells", "comment.md", "report.md", "report.html", "results.jsonl", "sweep.json", "promotion.json",
        }  # fmt: skip
        self._steady(suite)

    def _steady(self, suite: Suite) -> None:
        """Nothing that a process holds grows from one cell to the next."""
        notes = [json.loads(line) for line in (suite.path / "notes.jsonl").read_text().splitlines()]
        assert len(notes) == CELLS
        early, late = notes[CELLS // 3], notes[-1]
        for held in ("fds", "threads", "children", "rows"):
            assert late[held] <= early[held], held
        grown = (late["blocks"] - early["blocks"]) / (CELLS - CELLS // 3 - 1)
        assert grown < BLOCKS, f"{grown:.0f} blocks a cell"


def harness_mounts() -> set[str]:
    text = Path("/proc/self/mounts").read_text()
    return {line for line in text.splitlines() if re.search("wfb|pytest-wfbench", line)}
