"""Paths below directories that the sandbox's uid cannot enter."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.spec import Bind, Command, Finished, Tmpfs
from pytest_wfbench.sandbox.staging import _namespace, plan_staging

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can stage; others reach what they can reach")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A directory that others may read, below one that they may not enter."""
    tmp_path.chmod(0o700)
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o700)
    (inner / "file").write_text("seen\n")
    return inner


def read(sandbox: Bubblewrap, directory: Path, name: str = "file") -> Finished:
    mounts = (Tmpfs("/workspace", 1 << 16), Bind(directory, "/mnt"))
    return sandbox.run(Command(("/bin/cat", f"/mnt/{name}"), mounts, 20))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@needs_root
class TestStaging:
    def test_is_reached(self, sandbox: Bubblewrap, closed: Path) -> None:
        """What root keeps closed is mounted for the sandbox all the same, and what is written there later is seen."""
        assert plan_staging([closed], sandbox.identity).units
        assert read(sandbox, closed).stdout == b"seen\n"
        (closed / "later").write_text("too\n")
        assert read(sandbox, closed, "later").stdout == b"too\n"

    def test_nothing_is_left_on_the_host(self, sandbox: Bubblewrap, closed: Path) -> None:
        """The mounts are in no namespace of the host's, and one namespace serves all runs over the same paths."""
        read(sandbox, closed)
        before, mounted = descriptors(), Path("/proc/self/mounts").read_text()
        for _ in range(3):
            assert read(sandbox, closed).ok
        assert descriptors() == before
        assert "stage" not in mounted
        assert Path("/proc/self/mounts").read_text() == mounted

    def test_first_use_by_many_at_once(self, sandbox: Bubblewrap, closed: Path) -> None:
        """Whoever comes while the namespace is made waits for it: none enters one that is closed again."""
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda _: read(sandbox, closed), range(6)))
        assert [(ended.stdout, ended.stderr) for ended in found] == [(b"seen\n", b"")] * 6

    def test_is_kept_while_it_is_used(self, sandbox: Bubblewrap, closed: Path) -> None:
        """A namespace that no longer has a place in the cache stays open for a command line that names it."""
        staging = plan_staging([closed], sandbox.identity)
        words = staging.launch(sandbox.identity)
        _namespace.cache_clear()
        assert subprocess.run([*words, "cat", staging.place(closed) / "file"], capture_output=True).stdout == b"seen\n"

    def test_namespace_stays_outside(self, sandbox: Bubblewrap, closed: Path) -> None:
        """The command cannot enter the namespace that its paths were staged in."""
        mounts = (Tmpfs("/workspace", 1 << 16), Bind(closed, "/mnt"))
        ended = sandbox.run(Command(("/bin/sh", "-c", "ls -l /proc/self/fd /proc/1/fd; ls /var/cache"), mounts, 20))
        assert b"mnt:[" not in ended.stdout
        assert b"stage" not in ended.stdout
