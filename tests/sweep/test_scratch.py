"""The scratch of a sweep does not outlive it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.identity import choose_identity
from pytest_wfbench.sweep import scratch
from pytest_wfbench.sweep.scratch import scratch_directory

HOLD = """\
import sys
from pytest_wfbench.sandbox.identity import choose_identity
from pytest_wfbench.sweep.scratch import scratch_directory
with scratch_directory(choose_identity()) as path:
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path))


class TestScratch:
    def test_removed(self) -> None:
        """It is the sandbox's own and private, and is gone afterwards whatever is in it, also after an error."""
        identity = choose_identity()
        with suppress(ZeroDivisionError), scratch_directory(identity) as path:
            assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (identity.uid, 0o700)
            (path / "deep" / "er").mkdir(parents=True)
            (path / "deep").chmod(0o500)
            raise ZeroDivisionError
        assert not path.exists()

    def test_of_dead_owners(self) -> None:
        """What a killed sweep left is removed by the next one; that of a living one is not."""
        holders = [
            subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        killed, living = (Path(holder.stdout.readline().strip()) for holder in holders if holder.stdout)
        holders[0].kill()
        holders[0].wait()
        assert killed.exists()
        with scratch_directory(choose_identity()):
            assert not killed.exists()
            assert living.exists()
        holders[1].communicate("")
        assert not living.exists()

    def test_of_owners_that_cannot_be_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sweep in another container that shares the cache keeps its directory, though its process is nowhere."""
        argv = [sys.executable, "-c", HOLD]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout
            living = Path(holder.stdout.readline().strip())
            monkeypatch.setattr(scratch, "_started", lambda pid: "1" if pid == os.getpid() else None)
            with scratch_directory(choose_identity()):
                assert living.exists()
            holder.communicate("")

    def test_a_later_process_with_the_same_id(self, tmp_path: Path) -> None:
        """A process id that was given again is another owner; what has no owner's name is left alone."""
        with scratch_directory(choose_identity()) as path:
            parent = path.parent
            again, foreign = parent / f"{os.getpid()}-12345-abcd", parent / "notes"
            again.mkdir()
            foreign.mkdir()
            with scratch_directory(choose_identity()):
                assert (again.exists(), foreign.exists(), path.exists()) == (False, True, True)
