"""A task over a real public project: several hundred files, fetched as a source distribution, never committed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from filelock import FileLock

from pytest_wfbench.cli import main
from tests.e2e.conftest import Ended, sweep
from tests.suite import plant

pytestmark = pytest.mark.slow

PROJECT, SHA256 = "networkx==3.5", "d4c6f9cf81f52d69230866796b82afbccdec3db7ae4fbd1b65ea750feed50037"
ARCHIVE = "networkx-3.5.tar.gz"
FETCH_SECONDS = 180

CASES = """\
kind: implementation
tasks:
  - id: small-groups
    class: feature
    repo: networkx-3.5
    prompt: |
      Give networkx.utils.groups a keyword `minimum` (default 1): sets with fewer keys than that are left out.
    verify: python3 -m pytest -q --disable-plugin-autoload -p no:cacheprovider networkx/utils/tests/test_misc.py
    oracle:
      command: python3 -I -B "$WFBENCH_ORACLE_ROOT/check.py"
      files: [{source: check.py, target: check.py}]
      results: exit
    reference: right.patch
    reference_bad: [positional.patch]
"""

CHECK = '''\
"""Judges what a program that uses the changed library prints."""
import subprocess
import sys

PROGRAM = """
from networkx.utils import groups
many = {"a": 1, "b": 1, "c": 2, "d": 3, "e": 3, "f": 3}
print(sorted((k, sorted(v)) for k, v in groups(many).items()))
print(sorted(groups(many, minimum=2)), sorted(groups(many, minimum=3)), groups(many, minimum=4))
try:
    groups(many, 2)
except TypeError:
    print("keyword only")
"""
EXPECTED = """\\
[(1, ['a', 'b']), (2, ['c']), (3, ['d', 'e', 'f'])]
[1, 3] [3] {}
keyword only
"""
ran = subprocess.run([sys.executable, "-c", PROGRAM], cwd="/workspace", capture_output=True, text=True, timeout=60)
sys.exit(ran.stdout != EXPECTED)
'''

PATCH = """\
--- a/networkx/utils/misc.py
+++ b/networkx/utils/misc.py
@@ -220,14 +220,15 @@
     return zip(a, b)
 
 
-def groups(many_to_one):
+def groups(many_to_one, *, minimum=1):
     \"\"\"Converts a many-to-one mapping into a one-to-many mapping.
 
     `many_to_one` must be a dictionary whose keys and values are all
     :term:`hashable`.
 
     The return value is a dictionary mapping values from `many_to_one`
-    to sets of keys from `many_to_one` that have that value.
+    to sets of keys from `many_to_one` that have that value. Sets with fewer
+    than `minimum` keys are left out.
 
     Examples
     --------
@@ -239,7 +240,7 @@
     one_to_many = defaultdict(set)
     for v, k in many_to_one.items():
         one_to_many[k].add(v)
-    return dict(one_to_many)
+    return {value: keys for value, keys in one_to_many.items() if len(keys) >= minimum}
 
 
 def create_random_state(random_state=None):
"""


def fetched() -> Path:
    """The archive, from the package index the first time; in CI one that cannot be had is a failure."""
    place = platformdirs.user_cache_path("pytest-wfbench-tests")
    place.mkdir(parents=True, exist_ok=True)
    archive = place / ARCHIVE
    with FileLock(place / f"{ARCHIVE}.lock"):
        if not archive.exists():
            argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", PROJECT]
            fetch = subprocess.run(
                [*argv, "--dest", str(place)], capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
            )
            if fetch.returncode != 0:
                told = f"{PROJECT} cannot be fetched from the package index: {fetch.stderr.strip()[-300:]}"
                (pytest.fail if os.environ.get("CI") else pytest.skip)(told)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == SHA256
    return archive


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite over the project."""
    root = tmp_path_factory.mktemp("real")
    files = {
        "cases/real.cases.yaml": CASES,
        "oracles/check.py": CHECK,
        "oracles/right.patch": PATCH,
        "oracles/positional.patch": PATCH.replace("*, minimum=1", "minimum=1"),
        "apply.sh": f"#!/bin/sh\ngit apply <<'EOF'\n{PATCH}EOF\n",
        "idle.sh": "#!/bin/sh\nexit 0\n",
    }
    plant(root, files)
    subprocess.run(["tar", "-xzf", str(fetched()), "--no-same-owner", "-C", str(root / "cases")], check=True)
    assert sum(path.is_file() for path in (root / "cases" / "networkx-3.5").rglob("*")) >= 300
    return root


@pytest.fixture(scope="module")
def ended(project: Path) -> Ended:
    """Both agents on the task."""
    subjects = ("--wfbench-subject=command:apply.sh", "--wfbench-subject=command:idle.sh")
    return sweep(project / "results", "cases", *subjects, "--wfbench-arms=baseline", cwd=project)


class TestRealProject:
    def test_oracle_is_proven(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The oracle fails on the release, passes on the reference, and refuses one that breaks the promise."""
        status = main(["check", str(project / "cases" / "real.cases.yaml")])
        assert status == 0, capsys.readouterr().out

    def test_reference_resolves(self, ended: Ended) -> None:
        """An agent that applies the reference patch resolves the task, and its change is that patch."""
        assert ended.status == 0, ended.output[-3000:]
        row = next(row for row in ended.rows if row.requested_model == "apply.sh")
        assert (row.outcome, row.resolved, row.authored_tests_passed) == ("pass", True, True)
        assert row.churn
        assert (row.churn.files, row.churn.insertions, row.churn.deletions) == (1, 4, 3)

    def test_idle_agent_misses(self, ended: Ended) -> None:
        """An agent that does nothing misses: no-work-produced."""
        row = next(row for row in ended.rows if row.requested_model == "idle.sh")
        assert (row.outcome, row.kind) == ("miss", "no-work-produced")
