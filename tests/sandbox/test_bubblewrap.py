"""What a sandbox promises: what it shows, what it hides, how it ends."""

from __future__ import annotations

import os
import signal
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

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.channels import Story, judge
from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.spec import TAIL, Bind, Bounds, Command, Data, Finished, Overlay, Tmpfs

Shell = Callable[..., Finished]
Owned = Callable[[str], Path]


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def processes(mark: str) -> list[psutil.Process]:
    """Every process on the host, of any namespace, with the mark among its arguments."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


class TestResult:
    def test_status_and_streams(self, shell: Shell) -> None:
        """A command gives its status, its streams, its wall clock and what the sandbox itself cost."""
        ended = shell("echo out; echo err >&2; cat; sleep 0.1; exit 3", stdin=b"in")
        assert (ended.status, ended.stdout, ended.stderr) == (3, b"out\nin", b"err\n")
        assert ended.started
        assert 0.1 <= ended.seconds < 1
        assert 0 < ended.setup_seconds < 2

    def test_signal(self, shell: Shell) -> None:
        """A command that dies of signal n has status 128 + n."""
        assert shell("kill -KILL $$").status == 137

    @pytest.mark.parametrize(("name", "status"), [("/nowhere/x", 127), ("/etc/passwd", 126)])
    def test_command_that_cannot_be_executed(self, sandbox: Bubblewrap, name: str, status: int) -> None:
        """A command that is missing or not executable is the command's fault, with a shell's status."""
        ended = sandbox.run(Command((name,), (Tmpfs("/workspace", 1 << 20),), 10))
        assert (ended.started, ended.status) == (True, status)
        assert name.encode() in ended.stderr

    def test_bubblewrap_that_fails(self, sandbox: Bubblewrap) -> None:
        """A sandbox that cannot be made was never started, and its standard error is the cause."""
        ended = sandbox.run(Command(("/bin/true",), (Bind(Path("/no/such/source"), "/workspace"),), 10))
        assert (ended.started, ended.status, ended.ok) == (False, None, False)
        assert b"/no/such/source" in ended.stderr

    def test_command_that_fakes_a_failure(self, shell: Shell) -> None:
        """A command that prints what bubblewrap would print has started all the same."""
        ended = shell("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
        assert (ended.started, ended.status) == (True, 1)

    def test_output_limit(self, shell: Shell) -> None:
        """A stream that is kept whole and exceeds its limit ends the command with limit ``output``."""
        ended = shell("yes", stdout_limit=100_000, keep="whole")
        assert (ended.limit, len(ended.stdout), ended.ok) == ("output", 100_000, False)

    def test_tails(self, shell: Shell) -> None:
        """Of a stream without limit the last 64 KiB are kept."""
        ended = shell("seq 100000")
        assert len(ended.stdout) == TAIL
        assert ended.stdout.endswith(b"\n100000\n")


class TestEnding:
    def test_timeout_is_graceful(self, shell: Shell) -> None:
        """At the timeout the command gets SIGTERM, and what it still says is kept."""
        ended = shell("trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done", timeout=0.5)
        assert (ended.timed_out, ended.status, ended.stdout) == (True, None, b"hi\nbye\n")
        assert ended.seconds < 3

    @pytest.mark.slow
    def test_stubborn_command(self, shell: Shell) -> None:
        """A command that ignores SIGTERM is killed with all it started, and nothing is left when the call returns."""
        mark = f"mark-{os.getpid()}-stubborn"
        script = (
            f"trap '' TERM; (exec -a {mark} sleep 60) & setsid bash -c 'trap \"\" TERM; sleep 61' {mark} & sleep 62"
        )
        ended = shell(script, timeout=0.5)
        assert ended.timed_out
        assert 5 <= ended.seconds < 9
        assert processes(mark) == []

    def test_leftovers(self, shell: Shell) -> None:
        """Processes that outlive the command are ended, and the result says so."""
        mark = f"mark-{os.getpid()}-left"
        ended = shell(f"setsid bash -c 'sleep 60; true' {mark} >/dev/null 2>&1 & sleep 0.05; echo done")
        assert (ended.status, ended.leftovers, ended.stdout) == (0, True, b"done\n")
        assert ended.seconds < 0.2
        assert processes(mark) == []

    def test_no_leftovers(self, shell: Shell) -> None:
        """A process that ends right after the command is no leftover."""
        assert not shell("(sleep 0.1) & exit 0").leftovers

    def test_cancel(self, sandbox: Bubblewrap) -> None:
        """An event set from another thread ends the command, and the result says so."""
        cancel = threading.Event()
        threading.Timer(0.4, cancel.set).start()
        command = Command(("/bin/sleep", "60"), (Tmpfs("/workspace", 1 << 20),), 60)
        ended = replace(sandbox, cancel=cancel).run(command)
        assert (ended.cancelled, ended.ok, ended.timed_out) == (True, False, False)
        assert ended.seconds < 3

    def test_first_process_is_out_of_reach(self, shell: Shell) -> None:
        """A command can neither signal the sandbox's first process nor read its descriptors and environment."""
        script = "kill -INT 1; kill -TERM 1; kill -KILL 1; cat /proc/1/environ; ls /proc/1/fd; sleep 0.1; echo alive"
        ended = shell(script)
        assert (ended.status, ended.stdout) == (0, b"alive\n")
        assert ended.stderr.count(b"Permission denied") == 2

    def test_nothing_leaks(self, shell: Shell) -> None:
        """No descriptor is left open in the harness, whether the sandbox worked or not."""
        shell("true")
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        shell("true")
        shell("true", Bind(Path("/no/such"), "/x"))
        shell("sleep 9", timeout=0.2)
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208

    def test_command_inherits_three_descriptors(self, shell: Shell) -> None:
        """A command has its three streams and no other descriptor."""
        assert shell("ls /proc/self/fd").stdout.split() == [b"0", b"1", b"2", b"3"]

    def test_evidence_cannot_be_forged(self, shell: Shell) -> None:
        """No tool that an agent starts can write into the agent's stream through ``/proc``."""
        tool = "for pid in /proc/[0-9]*; do echo forged >$pid/fd/1; done; true"
        ended = shell(f"bash -c '{tool}' >/dev/null 2>&1; echo own", keep="whole", stdout_limit=1000)
        assert (ended.status, ended.stdout) == (0, b"own\n")


class TestOutside:
    @pytest.mark.parametrize("victim", ["bubblewrap", "init"])
    def test_killed(self, sandbox: Bubblewrap, victim: str) -> None:
        """A sandbox that somebody on the host kills is not taken for a command that failed."""
        mark = f"mark-{os.getpid()}-{victim}"

        def kill() -> None:
            assert wait_for(lambda: bool(processes(mark)), 10)
            parents = processes(mark)[0].parents()
            (parents[0] if victim == "init" else parents[1]).kill()

        killer = threading.Thread(target=kill)
        killer.start()
        argv = ("/bin/bash", "-c", "sleep 20; exit 1", mark)
        ended = sandbox.run(Command(argv, (Tmpfs("/workspace", 1 << 20),), 20))
        killer.join()
        assert (ended.started, ended.status, ended.limit) == (False, None, None)
        assert b"ended from outside, with status 137" in ended.stderr

    def test_no_limit_from_inside(self, shell: Shell) -> None:
        """No command can set a limit on the sandbox's first process, which would kill it; on itself it can."""
        ended = shell(
            "prlimit --pid 1 --cpu=0:0; prlimit --pid 1 --cpu --noheadings --output SOFT; ulimit -t 9 && ulimit -t"
        )
        assert ended.stdout.split() == [b"unlimited", b"9"]
        assert b"Operation not permitted" in ended.stderr

    def test_killed_before_it_began(self) -> None:
        """One that says nothing before it is gone is told by how it ended."""
        silent = Story(None, None, None, None, leftovers=False, full=None, failure=None)
        ended = judge(Finished(137, b"", b"", 0.1), silent, 0)
        assert (ended.started, ended.status) == (False, None)
        assert ended.stderr == b"it ended without a word, with status 137 (first process: none)"


class TestParentDeath:
    SOURCE = """
        import sys
        from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
        from pytest_wfbench.sandbox.spec import Command, Tmpfs
        argv = ("/bin/bash", "-c", "trap '' TERM INT HUP; setsid sleep 60 & sleep 60; true", sys.argv[1])
        make_bubblewrap().run(Command(argv, (Tmpfs("/workspace", 1 << 20),), 60))
    """

    def start(self, mark: str) -> subprocess.Popen[bytes]:
        harness = subprocess.Popen([sys.executable, "-c", textwrap.dedent(self.SOURCE), mark])
        assert wait_for(lambda: len(processes(mark)) >= 2, 10), "the command never ran"
        return harness

    def test_sigkill_of_the_harness(self) -> None:
        """SIGKILL of the harness leaves no process of a sandbox after five seconds, and nothing mounted."""
        mark = f"mark-{os.getpid()}-killed"
        mounted = Path("/proc/self/mountinfo").read_text()
        harness = self.start(mark)
        inside = {inner for process in processes(mark) for inner in process.children(recursive=True)}
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        assert wait_for(lambda: not processes(mark) and not any(one.is_running() for one in inside))
        assert Path("/proc/self/mountinfo").read_text() == mounted

    def test_interrupt_of_the_harness(self) -> None:
        """SIGINT of the harness ends the sandbox at once, however stubborn the command."""
        mark = f"mark-{os.getpid()}-interrupted"
        harness = self.start(mark)
        harness.send_signal(signal.SIGINT)
        assert harness.wait(5) != 0
        assert wait_for(lambda: not processes(mark), 2)


class TestIdentity:
    def test_never_root(self, sandbox: Bubblewrap, shell: Shell) -> None:
        """Inside, the user is 1000; outside, the process is of the sandbox's uid, without groups or capabilities."""
        seen: list[tuple[int, tuple[int, ...]]] = []
        mark = f"mark-{os.getpid()}-identity"

        def look() -> None:
            if wait_for(lambda: bool(processes(mark))):
                seen.extend((one.uids().real, tuple(os.getgroups())) for one in processes(mark))

        watcher = threading.Thread(target=look)
        watcher.start()
        ended = shell(
            f"id -u; id -G; grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status; exec -a {mark} sleep 1"
        )
        watcher.join()
        words = ended.stdout.split()
        assert words[:2] == [b"1000", b"1000"]
        assert words[3:12:2] == [b"0000000000000000"] * 5
        assert words[12:] == [b"NoNewPrivs:", b"1"]
        assert {uid for uid, _ in seen} == {sandbox.identity.uid}

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can choose")
    def test_chosen_uid(self, sandbox: Bubblewrap) -> None:
        """Root's sandboxes run under the uid that was asked for, which needs no account."""
        other = replace(sandbox, identity=Identity(61234, 61234))
        assert other.run(Command(("/bin/true",), (Tmpfs("/workspace", 1 << 20),), 10)).ok

    def test_root_is_refused(self) -> None:
        """An identity of uid 0 cannot be made."""
        with pytest.raises(ValueError, match="never runs as root"):
            Identity(0, 0)

    def test_no_nested_user_namespaces(self, shell: Shell) -> None:
        """A command cannot make a user namespace of its own."""
        assert shell("unshare --user true").status != 0

    def test_read_only_stays_read_only(self, shell: Shell, owned: Owned) -> None:
        """A read-only mount can be neither written, remounted nor moved away."""
        source = owned("source")
        (source / "file").write_text("old")
        script = (
            "echo new > /data/file; mount -o remount,rw /data; umount /data; mv /data /tmp/x; rm -rf /data/file; exit 0"
        )
        shell(script, Bind(source, "/data"))
        assert (source / "file").read_text() == "old"

    def test_kernel_settings(self, shell: Shell) -> None:
        """No kernel setting can be written."""
        ended = shell(
            "for f in sys/kernel/core_pattern sys/net/ipv4/ip_forward sysrq-trigger; do echo 1 > /proc/$f; done"
        )
        assert ended.stderr.count(b"/proc/s") == 3
        mounted = shell("grep ' /proc/sys ' /proc/self/mountinfo").stdout.split()
        assert mounted[5].startswith(b"ro")


class TestView:
    def test_environment(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        """The environment is a fixed list and what the command adds; nothing is inherited."""
        monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
        lines = shell("env", env={"EXTRA": "1"}).stdout.decode().splitlines()
        values = dict(line.split("=", 1) for line in lines)
        expected = {
            "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "PYTHONHASHSEED",
            "PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT", "EXTRA",
        }  # fmt: skip
        assert set(values) - {"PWD", "SHLVL", "_"} == expected
        assert (values["TZ"], values["LANG"], values["PYTHONHASHSEED"]) == ("UTC", "C.UTF-8", "0")

    def test_habits_of_the_host(self) -> None:
        """What the harness ignores or blocks, as under ``nohup``, and its umask are not the command's."""
        source = """
            import os, signal
            from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
            from pytest_wfbench.sandbox.spec import Command, Tmpfs
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
            os.umask(0o077)
            argv = ("/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)|^Umask' /proc/self/status")
            print(make_bubblewrap().run(Command(argv, (Tmpfs("/workspace", 1 << 20),), 20)).stdout.decode())
        """
        said = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True).stdout
        habits = dict(line.split(":\t") for line in said.strip().splitlines())
        # Signals 32 and 33 are the C library's own, which it lets nobody set.
        kept = {name: int(habits[name], 16) & ~(3 << 31) for name in ("SigBlk", "SigIgn")}
        assert (habits["Umask"], kept) == ("0022", {"SigBlk": 0, "SigIgn": 0})

    def test_pytest_runs_without_the_plugin(self, shell: Shell) -> None:
        """A pytest that verify or an oracle starts works, though this package is not to be had in the sandbox."""
        ended = shell("echo 'def test(): pass' > test_it.py; python3 -m pytest -q -p no:cacheprovider --trace-config")
        assert ended.status == 0, ended.stdout
        assert b"pytest_wfbench" not in ended.stdout

    def test_environment_reaches_the_command_only(self, shell: Shell) -> None:
        """A variable meant for the command is not seen by the programs that start it, and is in no argument list."""
        ended = shell("cat /proc/*/cmdline | tr '\\0' ' '; env", env={"LD_PRELOAD": "/nonexistent.so", "KEY": "s3cret"})
        assert ended.started
        text, _, environment = ended.stdout.partition(b"SHELL=")
        assert b"s3cret" not in text
        assert b"s3cret" in environment

    def test_etc(self, shell: Shell) -> None:
        """Of /etc a named list is there: no shadow, no ssh, and accounts that are the sandbox's own."""
        ended = shell("ls /etc; cat /etc/passwd; touch /etc/x; ls /etc/ssl")
        listed = ended.stdout.split()
        assert b"shadow" not in listed
        assert b"ssh" not in listed
        assert b"private" not in listed
        assert ended.stdout.count(b":x:") == 3
        assert b"touch" in ended.stderr

    def test_home_of_the_host(self, shell: Shell, owned: Owned) -> None:
        """Home directories, the project and the harness's temporary files are not there."""
        secret = owned("secret")
        (secret / "file").write_text("x")
        project = Path(__file__).parents[2]
        ended = shell(f"cat {secret}/file; ls {project}/pytest_wfbench /var/log /tmp/pytest-of-*; ls -A /home")
        assert ended.stdout.split() == [b"agent"]

    def test_root_directory(self, shell: Shell) -> None:
        """Nothing can be written outside the private places and the command's own mounts."""
        script = (
            "for d in / /etc /dev /home /usr /var /opt /proc /sys; do touch $d/x 2>/dev/null && echo $d; done; exit 0"
        )
        assert shell(script).stdout == b""

    @pytest.mark.parametrize("place", ["/home/agent", "/tmp", "/run", "/dev/shm"])
    def test_private_places(self, shell: Shell, place: str) -> None:
        """Home, temp and runtime directories are writable, bounded, and empty the next time."""
        assert shell(f"touch {place}/x && ls {place}", bounds=Bounds(disk=1 << 20)).status == 0
        ended = shell(f"ls -A {place}; head -c 80M /dev/zero > {place}/big", bounds=Bounds(disk=1 << 20))
        assert b"x" not in ended.stdout.split()
        assert b"No space left" in ended.stderr

    def test_network(self, shell: Shell) -> None:
        """There is a loopback of its own and nothing else."""
        ended = shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1; exec 3<>/dev/tcp/1.1.1.1/53", timeout=5)
        assert ended.stdout.split() == [b"lo"]
        assert b"unreachable" in ended.stderr

    def test_processes(self, shell: Shell) -> None:
        """Only the sandbox's own processes are seen."""
        assert shell("ls /proc | grep -c '^[0-9]'").stdout.strip() in {b"3", b"4"}

    def test_no_terminal(self, shell: Shell) -> None:
        """There is no controlling terminal to type into."""
        assert shell("echo x > /dev/tty").status == 1

    def test_runtime(self, sandbox: Bubblewrap, shell: Shell) -> None:
        """``python3`` and ``pytest`` are those of the harness's environment."""
        ended = shell(
            "command -v python3; python3 -c 'import sys; print(sys.prefix, sys.version_info[:3], sep=chr(10))'"
        )
        path, prefix, version = ended.stdout.decode().splitlines()
        assert Path(path) == sandbox.interpreter.scripts / "python3"
        assert prefix == sys.prefix
        assert version == str(tuple(sys.version_info[:3]))


class TestMounts:
    def test_bind(self, shell: Shell, owned: Owned) -> None:
        """A bind is read-only unless it is asked to be writable."""
        one, two = owned("one"), owned("two")
        ended = shell("touch /one/x; touch /two/x", Bind(one, "/one"), Bind(two, "/two", writable=True))
        assert ended.status == 0
        assert not (one / "x").exists()
        assert (two / "x").exists()

    def test_data(self, shell: Shell) -> None:
        """Bytes appear as a read-only file of the given mode."""
        data = bytes(range(256)) * 1000
        ended = shell(
            "stat -c %a /home/agent/.c/f; cat /home/agent/.c/f; echo x > /home/agent/.c/f",
            Data("/home/agent/.c/f", data, 0o555),
            stdout_limit=1 << 20,
        )
        assert ended.stdout == b"555\n" + data
        assert b"Read-only" in ended.stderr or b"denied" in ended.stderr

    def test_writable_overlay(self, shell: Shell, owned: Owned) -> None:
        """A writable overlay keeps changes in its upper, across runs, and its lowers as they were."""
        low, high, upper, work = owned("low"), owned("high"), owned("upper"), owned("work")
        for layer, name in ((low, "a"), (low, "b"), (high, "b")):
            (layer / name).write_text(layer.name)
        mount = Overlay((low, high), "/w", "rw", upper, work)
        first = shell("cat /w/a /w/b; rm /w/a; echo new > /w/c", mount)
        assert first.stdout == b"lowhigh"
        assert shell("ls /w; cat /w/c", mount).stdout == b"b\nc\nnew\n"
        assert (low / "a").read_text() == "low"
        assert sorted(path.name for path in upper.iterdir()) == ["a", "c"]

    def test_read_only_overlay(self, shell: Shell, owned: Owned) -> None:
        """A read-only overlay merges its layers, also a single one, and cannot be written."""
        low, high = owned("low"), owned("high")
        (low / "a").write_text("low")
        (high / "a").write_text("high")
        ended = shell("cat /w/a /v/a; touch /w/x", Overlay((low, high), "/w", "ro"), Overlay((low,), "/v", "ro"))
        assert (ended.stdout, ended.status) == (b"highlow", 1)

    def test_throw_away_overlay(self, shell: Shell, owned: Owned) -> None:
        """A throw-away overlay respects deletions of the layers below and forgets what is written."""
        low, upper, work = owned("low"), owned("upper"), owned("work")
        (low / "a").write_text("low")
        (owned("low/d") / "old").write_text("old")
        shell("rm /w/a; rm -r /w/d; mkdir /w/d; touch /w/d/new", Overlay((low,), "/w", "rw", upper, work))
        merged = Overlay((low, upper), "/w", "tmp")
        for _ in range(2):
            ended = shell("find /w -type f; test ! -e /w/a; echo $?; rm -r /w/d; touch /w/x; ls /w", merged)
            assert ended.stdout == b"/w/d/new\n0\nx\n"

    def test_large_command_line(self, sandbox: Bubblewrap, owned: Owned) -> None:
        """Hundreds of mounts are no problem."""
        mounts = tuple(Data(f"/data/{number}", b"%d" % number) for number in range(300))
        ended = sandbox.run(Command(("/bin/bash", "-c", "cat /data/* | wc -c"), mounts, 20, cwd="/data"))
        assert int(ended.stdout) == 10 + 180 + 600


class TestLimits:
    def test_processes(self, shell: Shell) -> None:
        """A command has no more processes than its bound, and a second sandbox is not disturbed."""
        ended = shell(
            "for i in $(seq 40); do sleep 2 & done 2>/dev/null; jobs -p | wc -l; kill $(jobs -p)",
            bounds=Bounds(processes=16),
        )
        assert ended.status != 0 or int(ended.stdout) <= 16
        assert shell("for i in $(seq 40); do sleep 0.2 & done; wait").status == 0

    def test_file_size(self, shell: Shell) -> None:
        """No file grows beyond the bound."""
        ended = shell("head -c 3M /dev/zero > /tmp/x; stat -c %s /tmp/x", bounds=Bounds(file_size=1 << 20))
        assert int(ended.stdout) == 1 << 20

    def test_memory(self, shell: Shell) -> None:
        """Address space has a backstop, 8 GiB above the memory that may be used."""
        assert shell("python3 -c 'bytearray(17 << 30)'").status == 1

    def test_no_core_files(self, shell: Shell) -> None:
        """A crash leaves no core file."""
        assert shell("ulimit -c").stdout == b"0\n"


@pytest.fixture(autouse=True)
def no_processes_left() -> Iterator[None]:
    before = living_children()
    yield
    assert living_children() - before == set()


def living_children() -> set[psutil.Process]:
    """Other tests of this process may have a gateway that runs for the whole session."""
    return {child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE}
