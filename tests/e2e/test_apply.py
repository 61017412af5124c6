"""The demo's candidate, applied to a copy of the repository it was made for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Ended, once  # noqa: F401  (a fixture that the next one needs)
from tests.e2e.test_demo import demo  # noqa: F401  (the one demo of all tests)

pytestmark = pytest.mark.slow

SKILL, MIRROR = ".claude/skills/work/SKILL.md", "plugin/skills/work/SKILL.md"
OVERLAY = ROOT / "cases/overlays/leaner-work/work/SKILL.md"


def wfbench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_wfbench.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_apply(demo: Ended, tmp_path: Path) -> None:  # noqa: F811
    """The sweep keeps the candidate; the dry run shows it, the apply writes it and its mirror, and nothing else."""
    repo = tmp_path / "ledger"
    shutil.copytree(ROOT / "cases/ledger", repo)
    mirrored = subprocess.run(
        ["diff", "-r", ".claude/skills", "plugin/skills"], cwd=repo, capture_output=True, text=True
    )
    assert (mirrored.returncode, mirrored.stdout) == (0, "")
    before = (repo / SKILL).read_bytes()
    assert (demo.results / "candidate/work/SKILL.md").read_bytes() == OVERLAY.read_bytes()
    dry = wfbench("apply", demo.results, "--to", repo, "--dry-run")
    assert (dry.returncode, (repo / SKILL).read_bytes()) == (0, before), dry.stderr
    assert all(f"--- a/{path}" in dry.stdout for path in (SKILL, MIRROR))
    real = wfbench("apply", demo.results, "--to", repo)
    assert (real.returncode, real.stdout) == (0, f"changed {SKILL}\nchanged {MIRROR}\n"), real.stderr
    for path in (SKILL, MIRROR):
        assert (repo / path).read_bytes() == OVERLAY.read_bytes()
        (repo / path).write_bytes(before)
    changed = subprocess.run(["diff", "-r", ROOT / "cases/ledger", repo], capture_output=True, text=True)
    assert changed.stdout == ""


def test_power(demo: Ended) -> None:  # noqa: F811
    """The gate's false-promotion rate on the demo's rows."""
    told = wfbench("power", demo.results, "--sims", "50")
    assert (told.returncode, told.stdout.count("identical candidate")) == (0, 2), told.stderr
