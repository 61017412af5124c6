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
        names = os.listdir(directory or b".")
        for name in sorted({*_names_before(os.path.join(start, directory)), *names} - {b".git"}):
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
    descended into where the upper has it, and what it hides below is removed first where it is opaque. One that is
    closed is no small matter: its owner, which is every later command too, could open it and find what nobody counted.

    Raises:
        OSError: when a directory cannot be listed.
    """
    budget = LARGE_TREE
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        for name in sorted(os.listdir(os.path.join(upper, directory))):
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


def whole_entries(root: bytes, start: bytes) -> Iterator[bytes]:
    """Say all that is in a directory of the workspace, if the start state has it as a directory of its own.

    Raises:
        OSError: when a directory cannot be listed.
    """
    if not _is_own_directory(root, start) or not _is_own_directory(root, b"."):
        return
    yield deletion(root)
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                waiting += [path] if name != b".git" else []
            else:
                yield _current(path, LARGE_TREE, LARGE_TREE)


def _is_own_directory(path: bytes, base: bytes) -> bool:
    """Whether there is a directory at a path, through no link."""
    for part in path.split(b"/"):
        base = os.path.join(base, part)
        status = _status(base)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return False
    return True


def is_below(path: bytes, places: tuple[bytes, ...]) -> bool:
    """Whether a path is one of the places, or below one."""
    return any(path == place or path.startswith(place + b"/") for place in places)


def _names_before(directory: bytes) -> list[bytes]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_opaque(directory: bytes) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(directory, name, follow_symlinks=False) in (b"y", b"x"):
                return True
        except OSError:
            continue
    return False


def _current(path: bytes, budget: int, largest: int = LARGE_FILE) -> bytes:
    """Return what a path of the workspace holds now; pipes, sockets and devices are nothing to git."""
    status = _status(path)
    if status is None:
        return deletion(path)
    if stat.S_ISLNK(status.st_mode):
        return inline_entry(path, 0o120000, os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        return deletion(path)
    mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
    return inline_entry(path, mode, _content(path, min(budget, largest)))


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
