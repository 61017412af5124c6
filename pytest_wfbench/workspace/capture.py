"""A plain directory read into memory: every file as it is, no link followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.digests import digest_tree
from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.workspace.repository import Directory, RepositoryProblem

LARGEST = 1 << 30
_LINK = 0o120000


@dataclass(frozen=True)
class Entry:
    """A file or link: relative path, git's mode, bytes (a link's are its target)."""

    path: bytes
    mode: int
    data: bytes

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.mode == _LINK


def capture(source: Directory) -> tuple[Entry, ...]:
    """Read a directory, without any ``.git`` and without what it excludes, sorted by path.

    Raises:
        RepositoryProblem: when a file changes meanwhile, or all of it is larger than ``LARGEST``.
    """
    entries: list[Entry] = []
    left = LARGEST
    for relative in sorted(_walk(source)):
        entry = _entry(source.path, relative, left)
        if entry is not None:
            entries.append(entry)
            left -= len(entry.data)
    return tuple(entries)


def digest(entries: tuple[Entry, ...]) -> str:
    """Return a digest of paths, modes and bytes, wherever the directory lies."""
    return digest_tree((f"{entry.mode:o} {os.fsdecode(entry.path)}", entry.data) for entry in entries)


def _walk(source: Directory) -> Iterator[str]:
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        with os.scandir(source.path / directory) as found:
            for entry in found:
                path = source.path / directory / entry.name
                if entry.name == ".git" or path in source.excluded:
                    continue
                relative = os.path.join(directory, entry.name)  # noqa: PTH118
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(relative)
                else:
                    yield relative


def _entry(root: Path, relative: str, limit: int) -> Entry | None:
    """Return an entry, none for what git does not know: pipes, sockets, devices."""
    place = root / relative
    try:
        status = place.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Entry(os.fsencode(relative), _LINK, os.fsencode(place.readlink()))
        if not stat.S_ISREG(status.st_mode):
            return None
        mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
        return Entry(os.fsencode(relative), mode, read_untrusted(root, relative, limit))
    except (UnsafeFile, OSError) as error:
        raise RepositoryProblem(
            f"{root}: cannot be captured: {error}: let nothing write there meanwhile, keep it below 1 GiB, or make it "
            "a git repository and name a `ref`"
        ) from error
