"""The oracle in the real sandbox: hidden, read-only, re-checked, and not to be satisfied by an exit status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.spec import Bind, Command, Finished
from pytest_wfbench.scoring.oracle import OracleTampered
from tests.scoring.conftest import MakeOracle, MakeWorkspace

IN_PROCESS = (
    'cd "$WFBENCH_ORACLE_ROOT" && PYTHONPATH=/workspace python3 -B -m pytest -q --disable-plugin-autoload '
    "-p no:cacheprovider --noconftest "
    '--rootdir "$WFBENCH_ORACLE_ROOT" -c /dev/null test_it.py --junitxml "$WFBENCH_ORACLE_RESULTS"'
)
TEST = {"test_it.py": "import app\n\ndef test_answer():\n    assert app.answer() == 42\n"}
NAME = ["test_it::test_answer"]


class TestVerdict:
    @pytest.mark.parametrize(("status", "passed"), [(0, True), (1, False)])
    def test_exit(self, oracle: MakeOracle, workspace: MakeWorkspace, status: int, passed: bool) -> None:
        """An oracle that judges from outside passes when it exits 0; its output is dropped."""
        result = oracle(f"echo hidden; exit {status}").judge(workspace())
        assert (result.passed, result.timed_out) == (passed, False)
        assert result.reason == (None if passed else "the oracle exited 1")
        assert "hidden" not in repr(result)

    def test_junit(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """An in-process oracle passes when the recorded tests ran and passed."""
        good = oracle(IN_PROCESS, TEST, NAME).judge(workspace(app_py="def answer(): return 42\n"))
        assert (good.passed, good.passed_tests) == (True, frozenset(NAME))
        bad = oracle(IN_PROCESS, TEST, NAME).judge(workspace(app_py="def answer(): return 41\n"))
        assert (bad.passed, bad.reason) == (False, "the oracle exited 1")

    def test_no_proof(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """Without results, with other results, or without a record of what must run, exit 0 is no pass."""
        one = '<testsuite><testcase classname="a" name="b"/></testsuite>'
        write = f"echo '{one}' > $WFBENCH_ORACLE_RESULTS"
        said = {
            "the oracle wrote no results": oracle("true $WFBENCH_ORACLE_RESULTS", tests=["a::b"]),
            "1 of 2 expected tests did not pass": oracle(write, tests=["a::b", "a::c"]),
            "no proof of which tests must run: `wfbench check` records it": oracle(write),
        }
        for reason, made in said.items():
            result = made.judge(workspace())
            assert (result.passed, result.reason) == (False, reason)
        assert oracle(write, tests=["a::b"]).judge(workspace()).passed

    @pytest.mark.parametrize(
        "plant",
        [
            "import os; os._exit(0)\n",
            "import atexit, os; atexit.register(lambda: os._exit(0))\ndef answer(): return 41\n",
            "import sys; sys.exit(0)\n",
        ],
        ids=["exit at import", "atexit", "sys.exit"],
    )
    def test_exit_zero_proves_nothing(self, oracle: MakeOracle, workspace: MakeWorkspace, plant: str) -> None:
        """Candidate code that ends the test process with status 0 does not pass."""
        assert not oracle(IN_PROCESS, TEST, NAME).judge(workspace(app_py=plant)).passed

    def test_results_that_are_a_link(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """Results are read without following a link."""
        result = oracle("ln -s /etc/passwd $WFBENCH_ORACLE_RESULTS", tests=["a::b"]).judge(workspace())
        assert not result.passed
        assert result.reason
        assert "a link" in result.reason


class TestHidden:
    def test_where_it_lies(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """The files lie at a random path, read-only; the workspace is a throw-away copy; there is no network."""
        script = (
            'set -e; test "$(cat "$WFBENCH_ORACLE_ROOT/deep/data")" = secret; '
            'for f in "$WFBENCH_ORACLE_ROOT/deep/data" "$WFBENCH_ORACLE_ROOT/new"; do '
            '  if sh -c "echo x > $f" 2>/dev/null; then exit 7; fi; done; '
            "echo changed > /workspace/README; test ! -S /run/wfbench/gateway.sock; "
            'test "$(python3 -c "import socket; print(*dict(socket.if_nameindex()).values())")" = lo; '
            "test ! -e /workspace/oracles"
        )
        made = oracle('sh "$WFBENCH_ORACLE_ROOT/check.sh"', {"check.sh": script, "deep/data": "secret"})
        mounts = workspace()
        for _ in range(2):
            assert made.judge(mounts).reason is None
        assert [path.name for path in made.scratch.iterdir()] == []

    def test_a_candidate_it_runs_cannot_find_it(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """A candidate that the oracle starts finds neither the files nor the oracle's process, and changes neither."""
        peek = (
            "import ctypes, os\n"
            "found = [p for p in os.listdir('/proc') if p.isdigit()]\n"
            "for place in ('/run', '/run/hidden'):\n"
            "    try: found += [n for n in os.listdir(place) if n not in ('hidden', 'wfbench')]\n"
            "    except OSError: pass\n"
            "parent, libc = os.getppid(), ctypes.CDLL(None)\n"
            "if libc.ptrace(16, parent, 0, 0) == 0: found.append('ptrace')\n"
            "local, remote = ctypes.create_string_buffer(8), (ctypes.c_size_t * 2)(id(os), 8)\n"
            "ours = (ctypes.c_size_t * 2)(ctypes.addressof(local), 8)\n"
            "if libc.process_vm_readv(parent, ours, 1, remote, 1, 0) > 0: found.append('memory')\n"
            "print(*found)\n"
        )
        check = 'said=$(env -i PATH="$PATH" python3 -I /workspace/peek.py); echo "$said" >&2; test -z "$said"'
        made = oracle('sh "$WFBENCH_ORACLE_ROOT/check.sh"', {"check.sh": check})
        result = made.judge(workspace(peek_py=peek))
        assert result.passed, result.said

    def test_not_to_be_seen_before(self, oracle: MakeOracle, sandbox: Bubblewrap, workspace: MakeWorkspace) -> None:
        """No byte of it is anywhere in the sandbox of a session or of verify."""
        secret = "oracle-marker-51b2"
        made = oracle('sh "$WFBENCH_ORACLE_ROOT/check.sh"', {"check.sh": f"# {secret}\nexit 0\n"})
        search = f"grep -rls {secret} /workspace /home /tmp /run /var /etc /opt 2>/dev/null; env | grep -c ORACLE"
        with made._staged():
            ended = sandbox.run(Command(("/bin/sh", "-c", search), workspace(), 30))
        assert ended.stdout.strip() == b"0"

    def test_tampering(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """Bytes that differ afterwards are the harness's own fault, not a verdict."""
        made = oracle("exit 0", {"check.sh": "exit 0\n"})

        class Tampering:
            name = "bwrap"

            def run(self, command: Command) -> Finished:
                root = next(m.source for m in command.mounts if isinstance(m, Bind) and m.source.name == "root")
                (root / "check.sh").unlink()
                (root / "check.sh").write_text("exit 1\n")
                return Finished(0, b"", b"", 0.1)

        with pytest.raises(OracleTampered, match=r"check\.sh changed"):
            replace(made, sandbox=Tampering()).judge(workspace())  # type: ignore[arg-type]


class TestBounds:
    def test_timeout_and_leftovers(self, oracle: MakeOracle, workspace: MakeWorkspace) -> None:
        """An oracle that runs too long, or leaves processes, is timed out: the candidate's doing."""
        late = oracle("sleep 30", timeout=1).judge(workspace())
        assert (late.passed, late.timed_out, late.reason) == (False, True, "the oracle ran longer than 1 s")
        left = oracle("setsid sleep 30 & exit 0").judge(workspace())
        assert (left.passed, left.timed_out, left.reason) == (False, True, "the oracle left processes behind")
