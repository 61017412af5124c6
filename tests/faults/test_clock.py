"""The machine's clock is set while a sweep runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pytest_wfbench
from pytest_wfbench.gateway.keys import Claim, mint, verify
from pytest_wfbench.report.words import elapsed
from tests.suite import Suite

PACKAGE = Path(pytest_wfbench.__file__).parent
WALL = {"time", "time_ns", "localtime", "gmtime", "ctime", "now", "utcnow", "today", "fromtimestamp", "clock_gettime"}
# Each reading of our one clock is hours off the one before, in both directions, in every process of the sweep.
JUMPING = """\
import itertools
from datetime import timedelta
from pytest_wfbench import clock

real, jumps = clock._read, itertools.cycle((0, 7200, -7200, 86400 * 200, -86400 * 200))
clock._read = lambda: real() + timedelta(seconds=next(jumps))
"""


def readings(tree: ast.AST) -> list[int]:
    """The lines of a module on which the wall clock is read."""
    found: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in WALL and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            found += [node.lineno] if owner in ("time", "datetime", "date") else []
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found += [node.lineno] if WALL.intersection(alias.name for alias in node.names) else []
    return found


class TestOneClock:
    def test_only_one_module_reads_it(self) -> None:
        """The wall clock is read in clock.py alone: durations and deadlines are of the monotonic clock."""
        reading = {
            str(path.relative_to(PACKAGE)): lines
            for path in PACKAGE.rglob("*.py")
            if (lines := readings(ast.parse(path.read_text())))
        }
        assert list(reading) == ["clock.py"]

    @pytest.mark.parametrize(
        "text",
        ["import time\ntime.time()", "from time import time\ntime()", "import datetime\ndatetime.datetime.now()",
         "from datetime import datetime\ndatetime.utcnow()", "import time\nf = time.time_ns"],
    )  # fmt: skip
    def test_it_would_be_seen(self, text: str) -> None:
        """Each way of reading it is found."""
        assert readings(ast.parse(text))

    def test_monotonic_is_none(self) -> None:
        """The monotonic clock is no reading of it."""
        assert not readings(ast.parse("import time\ntime.monotonic(); time.sleep(1); time.monotonic_ns()"))


class TestSweep:
    @pytest.mark.slow
    def test_jumping(self, suite: Suite) -> None:
        """A sweep under a clock that jumps by hours and months is like any other: rows, durations, verdict, report."""
        suite.put("cases/conftest.py", JUMPING)
        result = suite.run("-n", "2", "--wfbench-runs=3", "--wfbench-outage-limit=2")
        assert result.ret == 0, result.outlines
        rows = suite.rows()
        assert {(row["task"], row["run"], row["outcome"]) for row in rows} == {
            (task, run, "pass") for task in ("finish", "other") for run in (1, 2, 3)
        }
        moments = sorted(row["recorded_at"] for row in rows)
        assert moments[0][:4] != moments[-1][:4] or moments[0][5:7] != moments[-1][5:7]
        for row in rows:
            assert all(0 <= seconds < 60 for seconds in row["timings"].values() if seconds is not None)
        assert suite.sweep()["run_status"] == "complete"
        assert "PASS" in (suite.results / "report.md").read_text().splitlines()[0]


class TestWords:
    def test_backwards(self) -> None:
        """How long something took is unknown where the clock was set back in between, never negative."""
        assert elapsed("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:06.500Z") == 1.5
        assert elapsed("2026-01-02T03:04:05.000Z", "2026-01-02T02:04:06.500Z") is None


class TestKeys:
    def test_until(self) -> None:
        """A key lives until the moment it names, of whatever clock the caller reads."""
        claim = Claim("c", "work", "d", ("m",), 100)
        key = mint(b"s", claim)
        assert (verify(b"s", claim, key, 99.0), verify(b"s", claim, key, 100.0)) == (True, False)
