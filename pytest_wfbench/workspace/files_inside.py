"""Files of skills, inside a sandbox: laying a candidate's over them, and the digest of what is there.

Run there by the bare interpreter; needs the standard library only.
"""

# Paths are bytes, and the import of pathlib costs each sandbox milliseconds.
# ruff: noqa: PTH101, PTH102, PTH108, PTH112, PTH114, PTH115, PTH118, PTH120, PTH208

from __future__ import annotations

import marshal
import os
import stat
import sys

from pytest_wfbench.workspace.light import as_json, sha256

_DATE = 1_000_000_000


def place(value: tuple[str, tuple[tuple[str, bytes], ...]]) -> int:
    """Write (relative path, bytes) below a directory of the workspace, through no link, and return their number."""
    root, files = value
    for relative, data in files:
        target = os.path.join(root, relative)
        directory = _directory(os.path.dirname(target))
        if os.path.islink(target):
            os.unlink(target)
        with open(target, "wb") as stream:
            stream.write(data)
        os.chmod(target, 0o755 if data.startswith(b"#!") else 0o644)
        os.utime(target, (_DATE, _DATE))
        os.utime(directory, (_DATE, _DATE))
    return len(files)


def _directory(path: str) -> str:
    """Make the directories of a relative path, and refuse links among them."""
    so_far = ""
    for part in path.split("/"):
        so_far = os.path.join(so_far, part)
        if os.path.islink(so_far) or (os.path.lexists(so_far) and not os.path.isdir(so_far)):
            raise SystemExit(f"{so_far}: not a directory of its own, so nothing can be laid over it")
        if not os.path.isdir(so_far):
            os.mkdir(so_far)
    return path


def digests(directories: tuple[str, ...]) -> list[str | None]:
    """Return a digest of every directory of the workspace: paths, modes, link targets, bytes; none if there is none."""
    return [_digest(os.fsencode(path)) for path in directories]


def _digest(root: bytes) -> str | None:
    parts = root.split(b"/")
    above = [b"/".join(parts[: count + 1]) for count in range(len(parts))]
    if any(os.path.islink(path) for path in above) or not os.path.isdir(root):
        return None
    total = sha256()
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            total.update(
                b"%s\0%o\0%s\0" % (os.path.relpath(path, root), status.st_mode, _content(path, status.st_mode))
            )
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
    return total.hexdigest()


def _content(path: bytes, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return b""
    total = sha256()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
        while data := stream.read(1 << 20):
            total.update(data)
    return total.digest()


def main(task: str) -> None:
    """Read a value, write what the task gives for it as JSON."""
    sys.stdout.write(as_json({"place": place, "digests": digests}[task](marshal.load(sys.stdin.buffer))))
