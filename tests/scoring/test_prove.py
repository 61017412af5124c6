"""Proof of oracles, and of the sabotages that test them: real workspaces, the real sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
from pytest_wfbench.sandbox.spec import Command, Tmpfs
from pytest_wfbench.scoring.prove import Proof
from pytest_wfbench.scoring.sabotage import SABOTAGES
from pytest_wfbench.sweep.proof import load_for_proof, proofs

CASES = """\
kind: implementation
tasks:
  - id: one
    repo: repo
    prompt: Let it answer 42.
    verify: python3 -m app
    oracle: {{command: '{command}', files: [{{source: check.py, target: check.py}}], results: {results}}}
{more}"""

APP = "def answer():\n    return 41\n\n\nif __name__ == '__main__':\n    print(answer())\n"
PATCH = "--- a/app.py\n+++ b/app.py\n@@ -1,4 +1,4 @@\n def answer():\n-    return {old}\n+    return {new}\n \n \n"
REFERENCES = "    reference: right.patch\n    reference_bad: [wrong.patch]\n"

IN_PROCESS = "from app import answer\n\n\ndef test_answer():\n    assert answer() == 42\n"
BLACK_BOX = (
    "import subprocess, sys\n"
    "ran = subprocess.run([sys.executable, '-m', 'app'], cwd='/workspace', capture_output=True, text=True)\n"
    "sys.exit(ran.stdout != '42\\n')\n"
)
NAIVE = (
    "cp $WFBENCH_ORACLE_ROOT/check.py tests/test_check.py && "
    "PYTHONPATH=. python3 -m pytest --disable-plugin-autoload -q"
)
JUNIT = (
    "PYTHONPATH=/workspace python3 -B -m pytest -q --disable-plugin-autoload --noconftest -p no:cacheprovider "
    "--rootdir $WFBENCH_ORACLE_ROOT -c /dev/null $WFBENCH_ORACLE_ROOT/check.py --junitxml $WFBENCH_ORACLE_RESULTS"
)
PROPER = "python3 -I -B $WFBENCH_ORACLE_ROOT/check.py"

Prove = Callable[..., Proof]


@pytest.fixture
def prove(tmp_path: Path) -> Prove:
    """Prove the oracle of one task."""

    def run(command: str, check: str = "", results: str = "exit", more: str = REFERENCES, **how: Any) -> Proof:
        files = {
            "cases/a.cases.yaml": CASES.format(command=command, results=results, more=more),
            "cases/repo/app.py": APP,
            "cases/repo/tests/test_app.py": "def test_nothing(): pass\n",
            "oracles/check.py": check,
            "oracles/right.patch": PATCH.format(old=41, new=42),
            "oracles/wrong.patch": PATCH.format(old=41, new=43),
            "oracles/stale.patch": PATCH.format(old=40, new=42),
        }
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        tasks = load_for_proof([tmp_path / "cases"])
        ((_, proof),) = proofs(tasks, **{"repeat": 1, "sabotage": False, **how})
        return proof

    return run


class TestKind:
    def test_told_by_what_it_does(self, prove: Prove) -> None:
        """An oracle that believes the exit status of what it imports is in-process, whatever it calls itself."""
        proof = prove('PYTHONPATH=. python3 -c "import app, sys; sys.exit(app.answer() != 42)" # check.py')
        assert (proof.faults, proof.kind) == ((), "in-process")


class TestStates:
    def test_proven(self, prove: Prove) -> None:
        """An oracle that fails on the ref, passes on the reference and fails on each bad one is proven."""
        proof = prove(PROPER, BLACK_BOX)
        assert (proof.faults, proof.kind, proof.expectation) == ((), "black-box", None)
        assert [(r.state, r.wanted, r.oracle, r.verify) for r in proof.results] == [
            ("untouched", False, (False,), True),
            ("reference", True, (True,), True),
            ("wrong.patch", False, (False,), True),
        ]

    def test_junit_is_learned(self, prove: Prove) -> None:
        """What an in-process oracle must show is learned from the reference."""
        proof = prove(JUNIT, IN_PROCESS, "junit")
        assert (proof.faults, proof.kind) == ((), "in-process")
        assert proof.expectation is not None
        assert proof.expectation.tests == ("check::test_answer",)

    @pytest.mark.parametrize(
        ("command", "more", "faults"),
        [
            ("exit 0 # check.py", REFERENCES, ["untouched: the oracle passes where it must fail",
                                               "wrong.patch: the oracle passes where it must fail"]),
            ("exit 1 # check.py", REFERENCES, ["reference: the oracle fails where it must pass (the oracle exited 1)"]),
            ("exit 1 # check.py", "",
             ["reference: the task has no reference, so nothing shows that the oracle can pass"]),
        ],
        ids=["cannot fail", "cannot pass", "no reference"],
    )  # fmt: skip
    def test_no_oracle(self, prove: Prove, command: str, more: str, faults: list[str]) -> None:
        """An oracle that cannot fail or cannot be seen to pass is an error."""
        assert list(prove(command, more=more).faults) == faults

    def test_stale_patch(self, prove: Prove) -> None:
        """A patch that does not apply is told as such."""
        (fault,) = prove(PROPER, BLACK_BOX, more=REFERENCES.replace("wrong", "stale")).faults
        assert fault.startswith("stale.patch: patch-failed: ")

    def test_moods(self, prove: Prove) -> None:
        """An oracle that does not answer the same every time is an error."""
        proof = prove("exit $(($(od -An -N1 -tu1 /dev/urandom) % 2)) # check.py", repeat=12)
        assert "untouched: the oracle does not answer the same every time (12 runs)" in proof.faults


@pytest.mark.slow
class TestSabotage:
    def test_naive_oracle_falls(self, prove: Prove) -> None:
        """Each sabotage turns an oracle green that runs in the workspace and believes its exit status."""
        proof = prove(NAIVE, IN_PROCESS, sabotage=True)
        fooled = [result.state for result in proof.results if result.oracle == (True,) and not result.wanted]
        fit = [sabotage.name for sabotage in SABOTAGES if sabotage.name not in ("shadowing-tool", "parents-memory")]
        assert fooled == [f"sabotage {name}" for name in fit]
        assert len(proof.faults) == len(fit)
        assert proof.kind == "in-process"

    def test_tools_of_the_workspace(self, prove: Prove) -> None:
        """An oracle that finds its tools in the workspace falls for those that lie there."""
        proof = prove("export PATH=.:$PATH; grep -q 42 app.py # check.py", sabotage=True)
        assert "sabotage shadowing-tool: the oracle passes where it must fail" in proof.faults

    def test_memory(self, tmp_path: Path) -> None:
        """The plant that overwrites its parents ends one well where /proc shows it, not in an oracle's sandbox."""
        plant = next(sabotage for sabotage in SABOTAGES if sabotage.name == "parents-memory")
        caller = "import subprocess, sys; subprocess.run([sys.executable, 'app.py']); sys.exit(5)"
        script = 'printf %s "$1" > plant.py; echo > app.py; python3 plant.py; python3 -c "$2"; echo $?'
        box = make_bubblewrap()
        ended = {
            shown: box.run(
                Command(
                    ("/bin/sh", "-c", script, "sh", plant.program, caller), (Tmpfs("/workspace", 1 << 20, 0o777),), 30,
                    processes_shown=shown,
                )
            )
            for shown in (True, False)
        }  # fmt: skip
        assert ended[False].stdout == b"5\n"
        assert ended[True].stdout != b"5\n"
        assert ended[True].status == 0

    def test_proper_oracle_stands(self, prove: Prove) -> None:
        """An oracle that judges from outside refuses all of them."""
        proof = prove(PROPER, BLACK_BOX, sabotage=True)
        assert proof.faults == ()
        assert [result.oracle for result in proof.results if result.state.startswith("sabotage")] == [(False,)] * len(
            SABOTAGES
        )
