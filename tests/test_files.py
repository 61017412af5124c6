"""The one way to read an untrusted file and the one way to write a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_wfbench.clock import stamp
from pytest_wfbench.files import UnsafeFile, append_line, read_untrusted, user_path, write_atomic


class TestRead:
    def test_plain(self, tmp_path: Path) -> None:
        """A regular file's bytes are returned, also below directories and behind a link in the root's own path."""
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "c").write_bytes(b"x\0y")
        (tmp_path / "root").symlink_to("a")
        assert read_untrusted(tmp_path, "a/b/c", 3) == b"x\0y"
        assert read_untrusted(tmp_path / "root", "b/c", 3) == b"x\0y"

    @pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/../x", "/etc/passwd", "a\0b"])
    def test_leaving_the_root(self, tmp_path: Path, name: str) -> None:
        """A path that is absolute, climbs or is none is refused."""
        (tmp_path / "a").mkdir()
        (tmp_path / "x").write_text("x")
        with pytest.raises(UnsafeFile):
            read_untrusted(tmp_path, name, 10)

    @pytest.mark.parametrize("name", ["link", "linked/file", "dangling", "pipe", "directory", "file/x", "device"])
    def test_no_regular_file(self, tmp_path: Path, name: str) -> None:
        """A link anywhere below the root, a pipe, a directory or a device is refused, and never waited for."""
        (tmp_path / "file").write_text("x")
        (tmp_path / "directory").mkdir()
        (tmp_path / "directory" / "file").write_text("x")
        (tmp_path / "link").symlink_to("file")
        (tmp_path / "linked").symlink_to("directory")
        (tmp_path / "dangling").symlink_to("gone")
        (tmp_path / "device").symlink_to("/dev/zero")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(UnsafeFile):
            read_untrusted(tmp_path, name, 10)

    def test_limit(self, tmp_path: Path) -> None:
        """A file of exactly the limit is read, one byte more is refused."""
        (tmp_path / "a").write_bytes(b"x" * 10)
        assert len(read_untrusted(tmp_path, "a", 10)) == 10
        with pytest.raises(UnsafeFile, match="10 bytes, more than the 9 allowed"):
            read_untrusted(tmp_path, "a", 9)

    def test_missing(self, tmp_path: Path) -> None:
        """A missing file is missing, not unsafe."""
        with pytest.raises(FileNotFoundError):
            read_untrusted(tmp_path, "gone", 1)

    @pytest.mark.parametrize("mode", ["ab", "r+b"])
    def test_changing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
        """A file that somebody writes to while it is read, longer or in place, is never returned as a mixture."""
        path = tmp_path / "a"
        path.write_bytes(b"0" * 4_000_000)
        os.utime(path, ns=(0, 0))
        read = os.read

        def read_and_write(descriptor: int, size: int) -> bytes:
            chunk = read(descriptor, size)
            if path.stat().st_mtime_ns == 0:
                with path.open(mode) as stream:
                    stream.write(b"1" * 100)
            return chunk

        monkeypatch.setattr(os, "read", read_and_write)
        with pytest.raises(UnsafeFile, match="changed while it was read"):
            read_untrusted(tmp_path, "a", 50_000_000)

    def test_no_descriptor_is_left(self, tmp_path: Path) -> None:
        """Reading and refusing leave no file open."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "link").symlink_to("x")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for name in ("a/link", "a/gone", "a", "a/link/x"):
            with pytest.raises((UnsafeFile, OSError)):
                read_untrusted(tmp_path, name, 1)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestWrite:
    def test_replaces(self, tmp_path: Path) -> None:
        """The new bytes are there, whole, with the mode asked for, and nothing else."""
        write_atomic(tmp_path / "a", "one")
        write_atomic(tmp_path / "a", b"two", mode=0o600)
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert (tmp_path / "a").read_bytes() == b"two"
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600

    def test_link_is_replaced_not_followed(self, tmp_path: Path) -> None:
        """A link in the place is replaced; what it points to stays as it is."""
        (tmp_path / "other").write_text("mine")
        (tmp_path / "a").symlink_to("other")
        write_atomic(tmp_path / "a", "new")
        assert ((tmp_path / "other").read_text(), (tmp_path / "a").is_symlink()) == ("mine", False)

    def test_failure_leaves_nothing(self, tmp_path: Path) -> None:
        """When it cannot be put into its place, the old stays and no half is left."""
        (tmp_path / "a").mkdir()
        with pytest.raises(OSError, match="directory"):
            write_atomic(tmp_path / "a", "x")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_killed(self, tmp_path: Path) -> None:
        """A reader sees the old bytes or the new ones, whenever the writer is killed."""
        path = tmp_path / "a"
        write_atomic(path, "0" * 300_000)
        program = (
            "import itertools, sys\nfrom pathlib import Path\nfrom pytest_wfbench.files import write_atomic\n"
            "for n in itertools.count(): write_atomic(Path(sys.argv[1]), str(n % 10) * 300_000)\n"
        )
        seen = set()
        for wait in (0.15, 0.2, 0.25, 0.3):
            with subprocess.Popen([sys.executable, "-c", program, path]) as writer:
                deadline = time.monotonic() + wait
                while time.monotonic() < deadline:
                    text = path.read_text()
                    assert len(text) == 300_000
                    seen.add(text[0])
                    assert set(text) == {text[0]}
                writer.send_signal(signal.SIGKILL)
        assert len(seen) > 1


class TestAppend:
    def test_torn_line(self, tmp_path: Path) -> None:
        """A torn last line is closed first, so that it spoils no other."""
        path = tmp_path / "a"
        append_line(path, "one")
        with path.open("a") as stream:
            stream.write('{"torn')
        append_line(path, "two")
        append_line(path, "three")
        assert path.read_text() == 'one\n{"torn\ntwo\nthree\n'

    def test_one_line(self, tmp_path: Path) -> None:
        """More than one line at once is refused."""
        with pytest.raises(ValueError, match="line break"):
            append_line(tmp_path / "a", "one\ntwo")
        assert not (tmp_path / "a").exists()

    def test_no_link(self, tmp_path: Path) -> None:
        """A link in the place is not followed."""
        (tmp_path / "a").symlink_to("b")
        with pytest.raises(OSError, match="symbolic links"):
            append_line(tmp_path / "a", "one")
        assert not (tmp_path / "b").exists()


class TestUserPath:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [("x", "/base/x"), ("../x", "/x"), ("./a//b/", "/base/a/b"), ("/abs/../y", "/y"),
         ("~nobody-of-this-name/x", "/base/~nobody-of-this-name/x"), ("~/x", "/home/me/x")],
    )  # fmt: skip
    def test_examples(self, text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A path is absolute and without `..`; `~` is a home, if there is such a user."""
        monkeypatch.setenv("HOME", "/home/me")
        assert user_path(text, Path("/base")) == Path(expected)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.text("~/.ab", max_size=10) | st.text(max_size=10))
    def test_anything(self, text: str) -> None:
        """Any text is a path of that kind."""
        found = user_path(text, Path("/base"))
        assert found.is_absolute()
        assert ".." not in found.parts


class TestClock:
    def test_stamp(self) -> None:
        """A moment of any zone is shown in UTC with milliseconds."""
        from datetime import UTC, datetime, timedelta, timezone

        moment = datetime(2026, 1, 2, 3, 4, 5, 678_999, tzinfo=UTC)
        assert stamp(moment) == "2026-01-02T03:04:05.678Z"
        assert stamp(moment.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-01-02T03:04:05.678Z"
