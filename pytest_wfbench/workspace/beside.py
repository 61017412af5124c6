"""What a task has mounted beside its workspace: directories of the host, read-only, known by their content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_wfbench.digests import digest_value
from pytest_wfbench.workspace.personal import personal_part

LARGEST = 16 << 30
MOST = 500_000


class UnfitDirectory(ValueError):
    """A directory that cannot be mounted; the message says why, the remedy behind a colon."""


def directory_digest(root: Path) -> str:
    """Return the digest of all that lies in a directory: relative paths, modes and bytes; links as they are.

    Raises:
        UnfitDirectory: when it is no directory of its own, too large, cannot be read, or holds a socket, a pipe or a
            device: a socket is a way out, read-only or not.
    """
    if root.is_symlink() or not root.is_dir():
        raise UnfitDirectory(f"{root} is no directory: name one that is there, and no link")
    if (personal := personal_part(root)) is not None:
        raise UnfitDirectory(f"{root}: no agent is shown {personal}")
    listing: list[list[str]] = []
    left = LARGEST
    try:
        for path, status in _walk(root):
            left -= status.st_size if stat.S_ISREG(status.st_mode) else 0
            if left < 0 or len(listing) >= MOST:
                raise UnfitDirectory(f"{root} holds too much: at most {MOST:,} files and {LARGEST >> 30} GiB")
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise UnfitDirectory(f"{path} is a socket, a pipe or a device")
            relative = os.fsencode(path.relative_to(root))
            listing.append([relative.hex(), f"{status.st_mode:o}", _content(path, status.st_mode)])
    except OSError as error:
        raise UnfitDirectory(f"{error.filename} cannot be read: {error.strerror}") from error
    return digest_value(sorted(listing))


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                path, status = Path(entry.path), entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
                yield path, status


def _content(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return os.fsencode(path.readlink()).hex()
    if not stat.S_ISREG(mode):
        return ""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
