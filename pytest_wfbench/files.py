"""The one way to read an untrusted file and the one way to write a file."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


class UnsafeFile(Exception):
    """A file that must not be trusted: not regular, behind a link, too large, or changing while read."""


def read_untrusted(root: Path, relative: str | os.PathLike[str], limit: int) -> bytes:
    """Return the bytes of ``root/relative`` without following any link below ``root``.

    Args:
        root: a directory the caller trusts; links in *its own* path are resolved.
        relative: a path inside it; absolute paths and ``..`` are refused.
        limit: the most bytes the file may have.

    Raises:
        UnsafeFile: for anything but a stable regular file of at most ``limit`` bytes.
        FileNotFoundError: when there is no such file.
    """
    parts = Path(relative).parts
    if "\0" in str(relative):
        raise UnsafeFile(f"{str(relative)!r}: not a path")
    if not parts or Path(relative).is_absolute() or ".." in parts:
        raise UnsafeFile(f"{relative}: the path leaves its root")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for index, part in enumerate(parts):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            if index < len(parts) - 1:
                flags |= os.O_DIRECTORY
            inner = _open_inside(descriptor, part, flags, relative)
            os.close(descriptor)
            descriptor = inner
        return _read_stable(descriptor, relative, limit)
    finally:
        os.close(descriptor)


def _open_inside(directory: int, name: str, flags: int, shown: object) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafeFile(f"{shown}: a link, not a regular file") from error
        if error.errno == errno.ENOTDIR:
            raise UnsafeFile(f"{shown}: a link or a file stands in the path") from error
        raise


def _read_stable(descriptor: int, shown: object, limit: int) -> bytes:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        raise UnsafeFile(f"{shown}: not a regular file")
    if before.st_size > limit:
        raise UnsafeFile(f"{shown}: {before.st_size} bytes, more than the {limit} allowed")
    chunks: list[bytes] = []
    read = 0
    while chunk := os.read(descriptor, 1 << 20):
        read += len(chunk)
        if read > limit:
            raise UnsafeFile(f"{shown}: more than the {limit} bytes allowed")
        chunks.append(chunk)
    after = os.fstat(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or read != after.st_size:
        raise UnsafeFile(f"{shown}: changed while it was read")
    return b"".join(chunks)


def write_atomic(path: Path, data: bytes | str, mode: int = 0o644, lasting: bool = True) -> None:
    """Replace ``path`` by ``data``: a reader sees the old bytes or the new ones, never a part.

    The bytes are fsynced before the rename, and the directory after it, unless they need not outlast this machine's
    run. Raises OSError, which names the file.
    """
    raw = data.encode() if isinstance(data, str) else data
    staged = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            if lasting:
                os.fsync(stream.fileno())
        staged.replace(path)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
    if lasting:
        sync_directory(path.parent)


def append_line(path: Path, line: str) -> None:
    """Append one line and fsync it. A torn earlier line is closed first, so that it spoils no other.

    Raises:
        ValueError: when the text is more than one line.
        OSError: when it cannot be written; nothing of it is there then. A link at ``path`` is not followed.
    """
    if "\n" in line:
        raise ValueError("a line holds no line break")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        end = os.fstat(descriptor).st_size
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
        append_whole(descriptor, (b"\n" if torn else b"") + line.encode() + b"\n", end)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_text(path: Path, text: str, most: int) -> bool:
    """Append text to a file that others append to as well, unless it would grow beyond ``most`` bytes.

    Raises:
        OSError: when it cannot be written; nothing of it is there then. A link at ``path`` is not followed.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        end, data = os.fstat(descriptor).st_size, text.encode()
        if end + len(data) > most:
            return False
        append_whole(descriptor, data, end)
        return True
    finally:
        os.close(descriptor)


def append_whole(descriptor: int, data: bytes, end: int) -> None:
    """Write ``data`` at the ``end`` of a file opened for appending; when not all of it can be, raise and leave none."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def user_path(text: str, base: Path) -> Path:
    """Return a path a person typed, absolute and without ``..``; ``~`` is a home, if there is such a user."""
    try:
        typed = Path(text).expanduser()
    except RuntimeError:
        typed = Path(text)
    return Path(os.path.abspath(base / typed))  # noqa: PTH100  (links stay as they are)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
