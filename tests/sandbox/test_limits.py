"""Limits of a sandbox: what is watched, in a real sandbox, and how it is told."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.channels import Channels
from pytest_wfbench.sandbox.limits import resource_limits, written
from pytest_wfbench.sandbox.spec import HOME, Bind, Bounds, Command, Excess, Finished, Overlay, Tmpfs

MIB = 1 << 20
Shell = Callable[..., Finished]
Owned = Callable[[str], Path]


@pytest.fixture
def watched(sandbox: Bubblewrap) -> Shell:
    """Run a script over a directory of the host's, with no control group whatever the machine has."""

    def run(script: str, workspace: Path | None = None, **bounds: int) -> Finished:
        mount = Bind(workspace, "/workspace", writable=True) if workspace else Tmpfs("/workspace", MIB)
        command = Command(("/bin/bash", "-c", script), (mount,), 20, bounds=Bounds(**bounds))
        return replace(sandbox, delegation=None).run(command)

    return run


def python(program: str) -> str:
    return f"exec python3 -c '{program}'"


class TestMemory:
    @pytest.mark.parametrize(
        "script",
        [
            pytest.param(python("import time; held = bytearray(300 << 20); time.sleep(15)"), id="one-process"),
            pytest.param(
                "for n in 1 2 3; do python3 -c 'import time; held = bytearray(100 << 20); time.sleep(15)' & done; wait",
                id="their-sum",
            ),
            pytest.param(
                python("import mmap, time; m = mmap.mmap(-1, 300 << 20); m.write(bytes(300 << 20)); time.sleep(15)"),
                id="shared",
            ),
            pytest.param("head -c 300M /dev/zero > /tmp/x; sleep 15", id="temp"),
            pytest.param(f"head -c 300M /dev/zero > {HOME}/x; sleep 15", id="home"),
            pytest.param(
                python(
                    'import os, time; f = os.memfd_create("x")\nfor _ in range(300): os.write(f, bytes(1 << 20))\n'
                    "time.sleep(15)"
                ),
                id="memfd",
            ),
        ],
    )
    def test_is_one_sum(self, watched: Shell, script: str) -> None:
        """Memory counts, wherever it lies: in one process, in several, shared, or in files without a disk."""
        ended = watched(script, memory=200 * MIB)
        assert (ended.limit, ended.status, ended.ok) == ("memory", 137, False)
        assert ended.seconds < 10
        assert "where 200 MiB are allowed" in ended.excess

    def test_throw_away_upper(self, sandbox: Bubblewrap, owned: Owned) -> None:
        """What verify writes to the workspace lies in memory, and counts."""
        mount = Overlay((owned("low"), owned("more")), "/workspace", "tmp")
        bounds = Bounds(memory=200 * MIB)
        command = Command(("/bin/bash", "-c", "head -c 300M /dev/zero > x; sleep 15"), (mount,), 20, bounds=bounds)
        assert replace(sandbox, delegation=None).run(command).limit == "memory"

    def test_shared_pages_count_once(self, watched: Shell) -> None:
        """Pages that a fork shares with its parent are not counted twice."""
        ended = watched(
            python("import os, time; held = bytearray(120 << 20)\nfor _ in range(2): os.fork()\ntime.sleep(1)"),
            memory=200 * MIB,
        )
        assert (ended.limit, ended.status) == (None, 0)

    def test_reserved_is_not_used(self, watched: Shell) -> None:
        """Address space that is only reserved is no memory."""
        ended = watched(python("import mmap, time; m = mmap.mmap(-1, 4 << 30); time.sleep(0.6)"), memory=200 * MIB)
        assert ended.ok


class TestProcesses:
    def test_at_the_bound(self, watched: Shell) -> None:
        """Who stays at the bound, where the kernel refuses more, is ended."""
        ended = watched("for n in $(seq 60); do sleep 15 & done 2>/dev/null; wait", processes=40)
        assert (ended.limit, ended.seconds < 10) == ("processes", True)

    def test_threads_count(self, watched: Shell) -> None:
        """Threads are processes to the kernel, and to the limit."""
        program = "import threading, time\nfor _ in range(39): threading.Thread(target=time.sleep, args=(15,)).start()"
        assert watched(python(program), processes=40).limit == "processes"

    def test_below_the_bound(self, watched: Shell) -> None:
        """As many as are allowed run undisturbed."""
        assert watched("for n in $(seq 30); do sleep 1 & done; wait", processes=40).ok


class TestDisk:
    @pytest.mark.parametrize("script", ["head -c 12M /dev/zero > x", "head -c 12M /dev/zero > x; sleep 15"])
    def test_bytes(self, watched: Shell, owned: Owned, script: str) -> None:
        """What is written to the workspace counts, while the command runs and when it has ended."""
        ended = watched(script, owned("w"), disk=8 * MIB)
        assert (ended.limit, ended.seconds < 10) == ("disk", True)

    def test_unlinked(self, watched: Shell, owned: Owned) -> None:
        """A removed file counts as long as it is open."""
        script = "exec 5> x; rm x; head -c 12M /dev/zero >&5; sleep 15"
        assert watched(script, owned("w"), disk=8 * MIB).limit == "disk"

    def test_names(self, watched: Shell, owned: Owned) -> None:
        """Empty files count by their number."""
        assert watched("touch $(seq 300)", owned("w"), inodes=200).limit == "disk"

    def test_below(self, watched: Shell, owned: Owned) -> None:
        """Sparse files count what they allocate, hard links once."""
        script = "head -c 3M /dev/zero > x; for n in 1 2 3 4; do ln x $n; done; truncate -s 500M sparse; sleep 0.5"
        assert watched(script, owned("w"), disk=8 * MIB, inodes=7).ok

    def test_file_size(self, watched: Shell, owned: Owned) -> None:
        """A command that dies of a file's size says so, whatever it had to do with it."""
        ended = watched("exec truncate -s 10G x", owned("w"))
        assert (ended.limit, ended.excess) == ("disk", "a file larger than the 1 GiB that are allowed")

    def test_full_directory(self, watched: Shell) -> None:
        """A command that fails with a private directory full has run into the limit; one that bears it has not."""
        fill = f"head -c 9M /dev/zero > {HOME}/x 2>/dev/null"
        assert watched(f"{fill}; exit 3", disk=4 * MIB).excess == f"it failed with {HOME} full"
        assert watched(f"{fill}; exit 0", disk=4 * MIB).ok

    def test_what_was_there(self, sandbox: Bubblewrap, owned: Owned) -> None:
        """In a copy only what changed in it counts."""
        place = owned("w")
        (place / "x").write_bytes(bytes(12 * MIB))
        mount = Bind(place, "/workspace", writable=True, since=(place / "x").stat().st_ctime_ns + 1)
        for script, limit in (("touch y", None), ("head -c 12M /dev/zero > y", "disk")):
            command = Command(("/bin/bash", "-c", script), (mount,), 20, bounds=Bounds(disk=8 * MIB))
            assert sandbox.run(command).limit == limit


class TestWritten:
    def test_places(self, tmp_path: Path) -> None:
        """Uppers and writable directories are looked at, each once, and nothing else."""
        for name in ("upper", "tree/in", "read", "low"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / "socket").touch()
        mounts = (
            Overlay((tmp_path / "low",), "/workspace", "rw", tmp_path / "upper", tmp_path / "work"),
            Overlay((tmp_path / "low",), "/other", "tmp"),
            Bind(tmp_path / "tree", "/tree", writable=True, since=7),
            Bind(tmp_path / "tree/in", "/tree/in", writable=True),
            Bind(tmp_path / "read", "/read"),
            Bind(tmp_path / "socket", "/socket", writable=True),
        )
        assert [(place.path.name, place.since) for place in written(mounts)] == [("upper", 0), ("tree", 7)]


class TestResourceLimits:
    def test_a_group_refuses_first(self) -> None:
        """Where a control group counts processes, the resource limit is behind it: only the group keeps a record."""
        alone, grouped = (dict(resource_limits(Bounds(processes=40), group)) for group in (False, True))
        assert alone[resource.RLIMIT_NPROC] == 40
        assert grouped[resource.RLIMIT_NPROC] > 40


def test_told() -> None:
    """What ran into a limit reads as the end of a sentence."""
    found = Excess("disk", "much")
    ended = Finished(0, b"", b"", 1.0, limit=found.limit, excess=found.told)
    assert ended.limit_told == "ran into the disk limit: much"
    assert not ended.ok


class TestSlowStart:
    def test_host_is_not_counted(self) -> None:
        """A process that is still making the sandbox, and sees the host's file systems, is not looked at."""
        with Channels() as channels:
            os.write(channels.status, b'{ "child-pid": 7 }\n{ "exit')
            assert (channels.child(), channels.running()) == (7, None)
            os.write(channels.report, b"run 1\n")
            assert channels.running() == 7
