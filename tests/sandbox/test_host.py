"""The sandbox that is none: what it keeps of the real one's promises."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pytest_wfbench.sandbox.choice import make_sandbox
from pytest_wfbench.sandbox.host import HostSandbox, make_host
from pytest_wfbench.sandbox.identity import runtime_directory
from pytest_wfbench.sandbox.spec import GATEWAY_URL, HOME, WORKSPACE, Bind, Bounds, Command, Data, Finished, Overlay

Shell = Callable[..., Finished]


@pytest.fixture(scope="module")
def host() -> HostSandbox:
    return make_host()


@pytest.fixture
def workspace(host: HostSandbox, tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return host.identity.own(path)


@pytest.fixture
def shell(host: HostSandbox, workspace: Path) -> Shell:
    def run(script: str, *mounts: object, timeout: float = 20, **options: object) -> Finished:
        bind = Bind(workspace, WORKSPACE, writable=True)
        return host.run(Command(("/bin/bash", "-c", script), (bind, *mounts), timeout, **options))  # type: ignore[arg-type]

    return run


def processes(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def vanished(mark: str, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and processes(mark):
        time.sleep(0.02)
    return not processes(mark)


class TestResult:
    def test_status_and_streams(self, shell: Shell) -> None:
        """A command gives its status, its streams, its wall clock and what starting it cost."""
        ended = shell("echo out; echo err >&2; cat; sleep 0.1; exit 3", stdin=b"in")
        assert (ended.status, ended.stdout, ended.stderr) == (3, b"out\nin", b"err\n")
        assert ended.started
        assert 0.1 <= ended.seconds < 1
        assert 0 < ended.setup_seconds < 2

    def test_command_that_cannot_be_executed(self, host: HostSandbox, workspace: Path) -> None:
        """A command that is missing is the command's fault, with a shell's status."""
        ended = host.run(Command(("/nowhere/x",), (Bind(workspace, WORKSPACE),), 10))
        assert (ended.started, ended.status) == (True, 127)

    @pytest.mark.parametrize(
        "mount", [Bind(Path("/no/such"), "/x"), Overlay((Path("/usr"), Path("/etc")), "/x", "ro"),
                  Overlay((Path("/usr"),), "/x", "tmp"), Bind(Path("/etc"), f"{WORKSPACE}/new")]
    )  # fmt: skip
    def test_what_needs_a_namespace(self, shell: Shell, mount: object) -> None:
        """Overlays, missing sources, and what is to be laid over another mount were never started, with the cause."""
        ended = shell("true", mount)
        assert (ended.started, ended.status) == (False, None)
        assert ended.stderr

    def test_name(self) -> None:
        """It calls itself ``host``, by which name it is asked for."""
        assert make_sandbox("host").name == "host"
        assert make_sandbox("bwrap").name == "bwrap"


class TestPlaces:
    def test_working_directory(self, shell: Shell, workspace: Path) -> None:
        """The command works in the workspace's real directory."""
        assert shell("echo x > made").ok
        assert (workspace / "made").read_text() == "x\n"

    def test_words(self, host: HostSandbox, workspace: Path, tmp_path: Path) -> None:
        """A target at the start of a word, of a variable or as working directory means its place on the host."""
        (tmp_path / "given").mkdir()
        mounts = (
            Bind(workspace, WORKSPACE, writable=True),
            Bind(tmp_path / "given", "/run/0123"),
            Data("/opt/wfbench/tool", b'#!/bin/sh\nprintf \'%s\\n\' "$@" "$ROOT" "$OTHER"; pwd\n', 0o555),
        )
        argv = ("/opt/wfbench/tool", "/run/0123/a", "/run/01234", "see /run/0123", "/opt/wfbench")
        ended = host.run(Command(argv, mounts, 10, cwd="/run/0123", env={"ROOT": "/run/0123", "OTHER": "x:/run/0123"}))
        lines = ended.stdout.decode().splitlines()
        given = str(tmp_path / "given")
        assert lines[:3] == [f"{given}/a", "/run/01234", "see /run/0123"]
        assert lines[3].endswith("/root/opt/wfbench")
        assert lines[4:] == [given, "x:/run/0123", given]

    def test_programs_stay_as_they_are(self, shell: Shell) -> None:
        """The text after ``-c`` is not touched."""
        ended = shell("/workspace/nothing; echo $0")
        assert ended.stderr.startswith(b"/bin/bash: line 1: /workspace/nothing: ")

    def test_private_home(self, shell: Shell) -> None:
        """Each command has a home and a temporary directory of its own, with the files given for them."""
        file = Data(f"{HOME}/.config/tool", b"set\n")
        one, two = (shell('cat "$HOME/.config/tool"; echo "$HOME" "$TMPDIR"; touch "$TMPDIR/x" "$HOME/y"', file)
                    for _ in range(2))  # fmt: skip
        assert one.ok
        assert one.stdout.startswith(b"set\n")
        assert set(one.stdout.split()[1:]).isdisjoint(two.stdout.split()[1:])
        assert not any(Path(os.fsdecode(path)).exists() for path in one.stdout.split()[1:])

    def test_environment(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        """A command inherits no variable of the harness, and no descriptor but its three streams."""
        monkeypatch.setenv("WFBENCH_TEST_SECRET", "x")
        ended = shell("env; ls /proc/self/fd")
        assert b"WFBENCH_TEST_SECRET" not in ended.stdout
        assert b"TZ=UTC" in ended.stdout
        assert ended.stdout.split()[-4:] == [b"0", b"1", b"2", b"3"]

    def test_never_root(self, host: HostSandbox, shell: Shell) -> None:
        """Root's commands run under the unprivileged uid, with the harness's own interpreter all the same."""
        ended = shell("id -u; id -G; python3 -c 'import sys; print(sys.prefix)'")
        assert ended.stdout.split()[0] == str(host.identity.uid).encode() != b"0"
        assert ended.stdout.split()[-1] == sys.prefix.encode()


class TestEnding:
    def test_timeout_is_graceful(self, shell: Shell) -> None:
        """At the timeout the command gets SIGTERM, and what it still says is kept."""
        ended = shell("trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done", timeout=0.5)
        assert (ended.timed_out, ended.status, ended.stdout) == (True, None, b"hi\nbye\n")

    @pytest.mark.slow
    def test_stubborn_command(self, shell: Shell) -> None:
        """A command that ignores SIGTERM is killed with all it started, and nothing is left when the call returns."""
        mark = f"mark-{os.getpid()}-host-stubborn"
        script = f"trap '' TERM; setsid bash -c 'trap \"\" TERM; sleep 61; true' {mark} & sleep 62; true"
        ended = shell(script, timeout=0.5)
        assert ended.timed_out
        assert 5 <= ended.seconds < 9
        assert processes(mark) == []

    def test_leftovers(self, shell: Shell) -> None:
        """Processes that outlive the command are ended, wherever they went, and the result says so."""
        mark = f"mark-{os.getpid()}-host-left"
        ended = shell(f"(setsid bash -c 'sleep 60; true' {mark} >/dev/null 2>&1 &); sleep 0.1; echo done")
        assert (ended.status, ended.leftovers, ended.stdout) == (0, True, b"done\n")
        assert processes(mark) == []

    def test_cancel(self, host: HostSandbox, workspace: Path) -> None:
        """An event set from another thread ends the command, and the result says so."""
        cancel = threading.Event()
        threading.Timer(0.4, cancel.set).start()
        command = Command(("/bin/sleep", "60"), (Bind(workspace, WORKSPACE),), 60)
        ended = replace(host, cancel=cancel).run(command)
        assert (ended.cancelled, ended.ok, ended.timed_out) == (True, False, False)
        assert ended.seconds < 3

    def test_sigkill_of_the_harness(self) -> None:
        """When the harness is killed, the command dies with all that it started, and its directory is removed."""
        mark = f"mark-{os.getpid()}-host-killed"
        source = f"""
            from pytest_wfbench.sandbox.host import make_host
            from pytest_wfbench.sandbox.spec import Command
            make_host().run(Command(("/bin/bash", "-c", "setsid bash -c 'sleep 60; true' {mark}"), (), 60, cwd="/"))
        """
        harness = subprocess.Popen([sys.executable, "-c", textwrap.dedent(source)])
        until = time.monotonic() + 20
        while not processes(mark) and time.monotonic() < until:
            time.sleep(0.02)
        (command,) = processes(mark)
        home = Path(command.environ()["HOME"])
        assert home.exists()
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        assert vanished(mark)
        until = time.monotonic() + 5
        while home.parents[2].exists() and time.monotonic() < until:
            time.sleep(0.02)
        assert not home.parents[2].exists()

    def test_nothing_leaks(self, shell: Shell) -> None:
        """No descriptor and no directory is left, whether the command worked or not."""
        shell("true")
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        shell("mkdir -p $HOME/a/b; chmod 0 $HOME/a; echo $HOME")
        shell("true", Bind(Path("/no/such"), "/x"))
        shell("sleep 9", timeout=0.2)
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


class TestLimits:
    def test_output(self, shell: Shell) -> None:
        """A stream that is kept whole and exceeds its limit ends the command with limit ``output``."""
        ended = shell("yes", stdout_limit=100_000, keep="whole")
        assert (ended.limit, len(ended.stdout), ended.ok) == ("output", 100_000, False)

    def test_evidence_cannot_be_forged(self, shell: Shell) -> None:
        """No tool that an agent starts can write into the agent's stream through ``/proc``."""
        tool = "for pid in /proc/[0-9]*; do echo forged >$pid/fd/1; done; true"
        ended = shell(f"bash -c '{tool}' >/dev/null 2>&1; echo own", keep="whole", stdout_limit=1000)
        assert (ended.status, ended.stdout) == (0, b"own\n")

    def test_file_size(self, shell: Shell, workspace: Path) -> None:
        """A file cannot grow beyond its bound."""
        shell("head -c 3M /dev/zero > big", bounds=Bounds(file_size=1 << 20))
        assert (workspace / "big").stat().st_size <= 1 << 20

    def test_processes(self, shell: Shell) -> None:
        """There cannot be many more processes than the bound, besides those that the user has already."""
        ended = shell(
            "for i in $(seq 200); do sleep 5 & done 2>/dev/null; jobs -p | wc -l", bounds=Bounds(processes=40)
        )
        assert not ended.ok or int(ended.stdout.split()[-1]) < 200


class TestGateway:
    @pytest.fixture
    def door(self, host: HostSandbox) -> Iterator[Path]:
        """A socket that answers every connection with what it says first, in capitals."""

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(connection.recv(64).upper())

        with runtime_directory(host.identity) as directory, socket.socket(socket.AF_UNIX) as listener:
            path = directory / "door.sock"
            listener.bind(str(path))
            host.identity.own(path)
            listener.listen(8)
            threading.Thread(target=answer, daemon=True).start()
            yield path
            listener.shutdown(socket.SHUT_RDWR)

    def test_relay(self, shell: Shell, door: Path) -> None:
        """The gateway's URL is replaced in variables, words and files by one that reaches the session's door."""
        reach = "at=${URL##*:}; exec 3<>/dev/tcp/127.0.0.1/${at%%/*} && echo ping >&3 && head -n 1 <&3"
        file = Data(f"{HOME}/settings", f"url={GATEWAY_URL}/v1\n".encode())
        script = f'{reach}; echo "$URL"; cat "$HOME/settings"'
        ended = shell(script, file, gateway=door, env={"URL": f"{GATEWAY_URL}/v1"})
        answer, url, line = ended.stdout.decode().split()
        assert answer == "PING"
        assert url.startswith("http://127.0.0.1:")
        assert not url.startswith(GATEWAY_URL)
        assert line == f"url={url}"

    def test_two_at_once(self, host: HostSandbox, door: Path, workspace: Path) -> None:
        """Commands that run at the same time have ports of their own."""
        command = Command(
            ("/bin/sh", "-c", 'echo "$URL"; sleep 0.5'), (Bind(workspace, WORKSPACE),), 10,
            env={"URL": GATEWAY_URL}, gateway=door,
        )  # fmt: skip
        ended: list[Finished] = []
        threads = [threading.Thread(target=lambda: ended.append(host.run(command))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({one.stdout for one in ended}) == 2

    def test_without_a_gateway(self, shell: Shell) -> None:
        """Without a gateway the URL stays as it is."""
        assert shell("echo $URL", env={"URL": GATEWAY_URL}).stdout.decode().strip() == GATEWAY_URL
