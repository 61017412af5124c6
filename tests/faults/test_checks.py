"""Setups, verifies, oracles and clean-ups that do not end well."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.attack.raid import Raid, Raiders
from tests.suite import SH

pytestmark = pytest.mark.slow

DEAF = "trap '' TERM; for i in 1 2 3 4 5 6 7 8 9; do sleep 4321; done"
DAEMON = "setsid -f sh -c 'exec >&- 2>&- <&-; sleep 4321'; true"
PASSES = "grep -q done a.txt"
TASKS = {
    "verify-hangs": {"verify": "sleep 4321"},
    "verify-deaf": {"verify": DEAF},
    "verify-daemon": {"verify": f"{DAEMON}; {PASSES}"},
    "oracle-hangs": {"oracle": "sleep 4321"},
    "oracle-deaf": {"oracle": DEAF},
    "oracle-daemon": {"oracle": DAEMON},
    "setup-fails": {"setup": "echo no luck >&2; exit 3"},
    "setup-hangs": {"setup": "sleep 4321"},
    "setup-closes": {"setup": "echo x > x.txt; chmod 0 ."},
    "setup-hides": {"setup": "mkdir -p d/e; echo x > d/e/x.txt; chmod 0 d/e d"},
    "kept-pass": {},
    "kept-miss": {"verify": "exit 7"},
}
# Their workspace cannot be removed.
CONFTEST = """\
import pytest

from pytest_wfbench.sandbox.removal import CleanupFailed


class Stuck:
    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def remove(self):
        raise CleanupFailed("/scratch/cell-x: cannot be removed: Device or resource busy")


@pytest.fixture
def workspace(workspace, cell):
    held = Stuck(workspace) if cell.task.id.startswith("kept-") else workspace
    yield held
    held.remove()
"""


def case_file() -> str:
    """A case file of all tasks, in JSON, which is YAML."""
    tasks: list[dict[str, Any]] = []
    for name, fields in TASKS.items():
        oracle = {
            "command": f': "$WFBENCH_ORACLE_ROOT/check.sh"; {fields["oracle"]}' if "oracle" in fields else SH,
            "files": [{"source": "check.sh", "target": "check.sh"}],
            "results": "exit",
        }
        tasks.append({"id": name, "prompt": "x", "verify": PASSES, **fields, "oracle": oracle})
    limits = {"session": "30s", "setup": "2s", "verify": "1s", "oracle": "1s"}
    return json.dumps({"kind": "implementation", "defaults": {"repo": "tiny", "timeout": limits}, "tasks": tasks})


@pytest.fixture
def ended(raid: Callable[[str, Raiders], Raid]) -> Raid:
    """One sweep over all of them."""
    files = {"cases/tiny.cases.yaml": case_file(), "cases/conftest.py": CONFTEST}
    return raid("bad-checks", Raiders({"solve": "echo done > a.txt\n"}, files=files, arguments=("-n", "2", "-k", "-")))


def rows_of(ended: Raid) -> dict[str, dict[str, Any]]:
    """The rows by task."""
    lines = (ended.results / "results.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == len({row["cell_id"] for row in found})
    return {row["task"]: row for row in found}


class TestChecks:
    def test_kinds(self, ended: Raid) -> None:
        """Hanging, deaf and daemonising checks are misses; a setup that fails is the harness's side."""
        kinds = {task: (row["outcome"], row["kind"]) for task, row in rows_of(ended).items()}
        assert kinds == {
            "verify-hangs": ("miss", "verify-timeout"),
            "verify-deaf": ("miss", "verify-timeout"),
            "verify-daemon": ("miss", "verify-timeout"),
            "oracle-hangs": ("miss", "oracle-timeout"),
            "oracle-deaf": ("miss", "oracle-timeout"),
            "oracle-daemon": ("miss", "oracle-timeout"),
            "setup-fails": ("unusable", "infra-error"),
            "setup-hangs": ("unusable", "infra-error"),
            "setup-closes": ("unusable", "infra-error"),
            "setup-hides": ("unusable", "infra-error"),
            "kept-pass": ("unusable", "cleanup-failure"),
            "kept-miss": ("miss", "verify-failed"),
        }

    def test_numbers_are_kept(self, ended: Raid) -> None:
        """What the session was, and what it cost, stays in the row of a cell whose check did not end."""
        for task, row in rows_of(ended).items():
            if task.startswith(("verify", "oracle", "kept")):
                assert row["timings"]["session"] > 0
                assert (row["cost_usd"], row["usage_incomplete"], row["churn"]["files"]) == (0, False, 1)
                assert row["transcript_digest"]

    def test_causes(self, ended: Raid) -> None:
        """Each says in a line what was wrong, without a traceback."""
        rows = rows_of(ended)
        assert "setup-failed: no luck" in rows["setup-fails"]["reason"]
        assert "setup-timeout" in rows["setup-hangs"]["reason"]
        for task in ("setup-closes", "setup-hides"):
            assert rows[task]["reason"].startswith("setup-failed: what it left cannot be read: ")
            assert "Permission denied" in rows[task]["reason"]
        assert "Traceback" not in ended.output, ended.output
        assert "INTERNALERROR" not in ended.output

    def test_clean_up(self, ended: Raid) -> None:
        """What cannot be cleaned up is in the row and red: a pass is unusable, a miss stays what it was."""
        rows = rows_of(ended)
        said = "/scratch/cell-x: cannot be removed: Device or resource busy"
        assert (rows["kept-pass"]["reason"], rows["kept-pass"]["resolved"]) == (said, None)
        assert rows["kept-miss"]["reason"].endswith(f"; cleanup-failure: {said}")
        assert ended.status == 1
        assert "ERROR cases/tiny.cases.yaml::kept-miss" in ended.output
