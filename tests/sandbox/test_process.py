"""Processes: bounded, delivered, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pytest_wfbench.sandbox.process import end_process, run_process, start_process
from pytest_wfbench.sandbox.spec import TAIL, Finished

ENV = {"PATH": "/usr/bin:/bin"}


def bash(script: str, **options: object) -> Finished:
    return run_process(["bash", "-c", script], env=ENV, **{"timeout": 20.0, **options})  # type: ignore[arg-type]


def gone(pid: int, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


class TestResult:
    def test_status_and_streams(self) -> None:
        """A process that ends gives its exit status and both of its streams."""
        ended = bash("echo out; echo err >&2; exit 3")
        assert (ended.status, ended.stdout, ended.stderr, ended.ok) == (3, b"out\n", b"err\n", False)

    def test_signal(self) -> None:
        """A process that dies of signal n has status 128 + n."""
        assert bash("kill -9 $$").status == 137

    def test_missing_program(self) -> None:
        """A program that does not exist was never started, and the cause names it."""
        ended = run_process(["no-such-program"], env=ENV, timeout=5)
        assert (ended.started, ended.status) == (False, None)
        assert b"no-such-program" in ended.stderr

    def test_environment_is_complete(self) -> None:
        """A process has the given environment and nothing of the harness's own."""
        os.environ["WFBENCH_TEST_SECRET"] = "x"
        try:
            names = {line.split("=")[0] for line in bash("env").stdout.decode().splitlines()}
        finally:
            del os.environ["WFBENCH_TEST_SECRET"]
        assert names <= {"PATH", "PWD", "SHLVL", "_"}

    def test_on_start(self) -> None:
        """The caller is told the process id once the process runs."""
        seen: list[int] = []
        ended = bash("echo $$", on_start=seen.append)
        assert seen == [int(ended.stdout)]


class TestStreams:
    def test_large_input_and_output_at_once(self) -> None:
        """Input larger than a pipe reaches a process that writes while it reads."""
        data = os.urandom(3 << 20)
        ended = bash("cat", stdin=data, stdout_limit=4 << 20, keep="whole")
        assert ended.ok
        assert ended.stdout == data

    def test_unread_input(self) -> None:
        """A process that reads none of its input ends as if there were none."""
        assert bash("exit 0", stdin=b"x" * (1 << 20)).ok

    def test_tail(self) -> None:
        """Of both streams the last 64 KiB are kept, and no limit ends the process."""
        ended = bash("for i in $(seq 40000); do echo line$i; echo err$i >&2; done")
        assert ended.ok
        assert len(ended.stdout) == len(ended.stderr) == TAIL
        assert ended.stdout.endswith(b"line40000\n")
        assert ended.stderr.endswith(b"err40000\n")

    def test_whole_up_to_the_limit(self) -> None:
        """A stream kept whole that exceeds its limit ends the process with limit ``output`` and keeps the head."""
        ended = bash("yes", stdout_limit=1000, keep="whole")
        assert (ended.limit, ended.stdout, ended.timed_out) == ("output", b"y\n" * 500, False)
        assert ended.seconds < 4

    def test_whole_at_the_limit(self) -> None:
        """A stream of exactly the limit is kept whole and ends nothing."""
        ended = bash("head -c 1000 /dev/zero", stdout_limit=1000, keep="whole")
        assert ended.ok
        assert len(ended.stdout) == 1000

    @pytest.mark.parametrize("script", ["echo out >/dev/stdout", "printf out | tee /dev/stderr >/dev/stdout"])
    def test_output_can_be_opened_by_name(self, script: str) -> None:
        """A process whose output is kept as a tail may open ``/dev/stdout``, as verify scripts do."""
        assert bash(script).ok

    def test_evidence_cannot_be_forged(self) -> None:
        """A stream kept whole cannot be opened anew by a process that did not inherit it, of the same uid or not."""
        tool = "for fd in 0 1 2; do echo forged-$fd >/proc/$PPID/fd/$fd; done; true"
        ended = bash(f"bash -c '{tool}' </dev/null >/dev/null 2>&1; echo own", keep="whole", stdout_limit=1000)
        assert ended.ok
        assert ended.stdout == b"own\n"


class TestEnding:
    def test_timeout(self) -> None:
        """A process that outlives its timeout is asked by SIGTERM and has no status."""
        ended = bash("trap 'echo bye; exit 0' TERM; sleep 60 & wait", timeout=0.3)
        assert (ended.timed_out, ended.status, ended.stdout) == (True, None, b"bye\n")
        assert ended.seconds < 3

    @pytest.mark.slow
    def test_stubborn(self) -> None:
        """A process that ignores SIGTERM is killed after five seconds."""
        ended = bash("trap '' TERM; while :; do sleep 1; done", timeout=0.2)
        assert ended.timed_out
        assert 5 <= ended.seconds < 8

    def test_group_is_ended(self) -> None:
        """What a process leaves in its group is killed when it ends."""
        ended = bash("sleep 60 >/dev/null 2>&1 & echo $!")
        assert gone(int(ended.stdout))

    def test_pipe_held_open(self) -> None:
        """A descendant that left the group and holds the pipes open does not hold up the result."""
        ended = bash("setsid sleep 3 & exit 0")
        assert ended.ok
        assert ended.seconds < 2

    def test_cancel(self) -> None:
        """An event set from another thread ends the process, and the result says so."""
        cancel = threading.Event()
        threading.Timer(0.3, cancel.set).start()
        ended = bash("sleep 60", cancel=cancel)
        assert (ended.cancelled, ended.timed_out, ended.ok) == (True, False, False)
        assert ended.seconds < 3

    def test_exception_while_running(self) -> None:
        """An exception that interrupts the call ends the process before it passes on."""
        pids: list[int] = []

        def interrupt(pid: int) -> None:
            pids.append(pid)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            bash("sleep 60", on_start=interrupt)
        assert gone(pids[0], 1)

    def test_nothing_leaks(self) -> None:
        """No descriptor and no zombie is left of a run."""
        bash("true")
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for _ in range(5):
            bash("sleep 60 & exit 0")
        run_process(["no-such-program"], env=ENV, timeout=5)
        assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208
        zombies = [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]
        assert zombies == []

    def test_start_and_end(self) -> None:
        """A process started to stay is ended by SIGTERM first."""
        process = start_process(
            ["bash", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"],
            env=ENV,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        with process.stdout as stream:
            assert stream.readline() == b"up\n"
            end_process(process)
            assert (stream.read(), process.returncode) == (b"bye\n", 0)


class TestParentDeath:
    def test_sigkill_of_the_parent(self, parent: Callable[[str], subprocess.Popen[bytes]]) -> None:
        """A process dies when the harness is killed."""
        harness = parent(
            """
            from pytest_wfbench.sandbox.process import run_process
            run_process(["sleep", "60"], env={"PATH": "/usr/bin:/bin"}, timeout=60,
                        on_start=lambda pid: print(pid, flush=True))
            """
        )
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        time.sleep(0.1)
        assert not gone(pid, 0.1)
        harness.send_signal(signal.SIGKILL)
        assert gone(pid)

    @pytest.fixture
    def parent(self, tmp_path: Path) -> object:
        """Start a Python program that can be killed."""
        started: list[subprocess.Popen[bytes]] = []

        def start(source: str) -> subprocess.Popen[bytes]:
            argv = [sys.executable, "-c", textwrap.dedent(source)]
            started.append(subprocess.Popen(argv, stdout=subprocess.PIPE))
            return started[-1]

        yield start
        for process in started:
            process.kill()
            process.communicate()
