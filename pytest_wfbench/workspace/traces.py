"""What was changed, in the words of ``fast-import``: found in an upper, or by comparison with the start state.

Run inside a sandbox, in the workspace; needs the standard library only. The workspace's ``.git`` is passed over.
"""

# pathlib knows no paths of bytes, and its import costs each sandbox milliseconds.
# ruff: noqa: PTH115, PTH118, PTH208

from __future__ import annotations

import os
import stat

from pytest_wfbench.workspace.fastimport import deletion, inline_entry
from pytest_wfbench.workspace.light import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE_FILE = 32 << 20
LARGE_TREE = 512 << 20
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


def compared_entries(start: bytes, since: int) -> Iterator[bytes]:
    """Say in what the workspace differs from the start state.

    Type, mode, size and dates say *which* files to look at: the date of the last change of state, which nobody can
    set back, is held against ``since``.
    """
    budget = LARGE_TREE
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        names = _names(directory or b".")
        if names is None:
            continue
        for name in sorted({*(_names(os.path.join(start, directory)) or ()), *names} - {b".git"}):
            path = os.path.join(directory, name)
            was, now = _status(os.path.join(start, path)), _status(path)
            if now is not None and stat.S_ISDIR(now.st_mode):
                if was is not None and not stat.S_ISDIR(was.st_mode):
                    yield deletion(path)
                waiting.append(path)
            elif now is None or was is None or now.st_ctime_ns >= since or _traits(was) != _traits(now):
                entry = _current(path, budget)
                budget -= len(entry)
                yield entry


def _status(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _traits(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_mode, status.st_size, status.st_mtime_ns


def changed_entries(prefix: bytes, upper: bytes) -> Iterator[bytes]:
    """Say what an upper, of the path ``prefix`` in the workspace, changes.

    The raw upper only says *which* paths to look at; what is there is read through the merged mount. A directory is
    descended into where the upper has it, and what it hides below is removed first where it is opaque.
    """
    budget = LARGE_TREE
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        for name in sorted(_names(os.path.join(upper, directory)) or ()):
            if name == b".git":
                continue
            relative = os.path.join(directory, name)
            raw = os.path.join(upper, relative)
            path = os.path.join(prefix, relative)
            if stat.S_ISDIR(os.lstat(raw).st_mode):
                if _is_opaque(raw):
                    yield deletion(path)
                waiting.append(relative)
            else:
                entry = _current(path, budget)
                budget -= len(entry)
                yield entry


def _names(directory: bytes) -> list[bytes] | None:
    try:
        return os.listdir(directory)
    except OSError:
        return None


def _is_opaque(directory: bytes) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(directory, name, follow_symlinks=False) in (b"y", b"x"):
                return True
        except OSError:
            continue
    return False


def _current(path: bytes, budget: int) -> bytes:
    """Return what a path of the workspace holds now; pipes, sockets and devices are nothing to git."""
    status = _status(path)
    if status is None:
        return deletion(path)
    if stat.S_ISLNK(status.st_mode):
        return inline_entry(path, 0o120000, os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        return deletion(path)
    mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
    return inline_entry(path, mode, _content(path, min(budget, LARGE_FILE)))


def _content(place: bytes, limit: int) -> bytes:
    """Return a file's bytes, or a binary stand-in that changes with them where it is too large or unreadable."""
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            data = stream.read(limit + 1)
            if len(data) <= limit:
                return data
            digest = sha256(data)
            while data := stream.read(1 << 20):
                digest.update(data)
            return b"\0large " + digest.hexdigest().encode()
    except OSError:
        return b"\0unreadable"
