"""Files of a repository, reached from its root without a link, by directories that are held open meanwhile."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pytest_wfbench.apply.errors import Refused
from pytest_wfbench.digests import digest_bytes

LIMIT = 64 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Held:
    """A regular file as it is now: digest of its bytes, which file it is, and whose."""

    digest: str
    data: bytes
    inode: tuple[int, int]
    mode: int
    owner: tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A name in a directory that is held open."""

    directory: int
    name: str
    shown: str

    def beside(self, name: str) -> Place:
        """Return another name in the same directory."""
        return Place(self.directory, name, str(PurePosixPath(self.shown).with_name(name)))

    def read(self) -> Held | None:
        """Return the file, or none where there is nothing.

        Raises:
            Refused: for anything but a regular file.
        """
        try:
            descriptor = os.open(
                self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.directory
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise Refused(f"{self.shown} is a link or no regular file") from error
            raise
        try:
            return self._held(descriptor)
        finally:
            os.close(descriptor)

    def _held(self, descriptor: int) -> Held:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(f"{self.shown} is no regular file")
        if found.st_size > LIMIT:
            raise Refused(f"{self.shown} has {found.st_size} bytes, more than the {LIMIT} that are read")
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            data = stream.read(LIMIT + 1)
        inode, owner = (found.st_dev, found.st_ino), (found.st_uid, found.st_gid)
        return Held(digest_bytes(data), data, inode, stat.S_IMODE(found.st_mode), owner)

    def remove(self) -> None:
        """Remove the name; it need not be there, not even where nothing could be removed."""
        try:
            os.unlink(self.name, dir_fd=self.directory)
        except OSError:
            with suppress(FileNotFoundError):
                os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
                raise

    def sync(self) -> None:
        """Make the names of its directory durable."""
        os.fsync(self.directory)


@dataclass
class Root:
    """A repository's root. Directories below it stay open until the end, so that nothing is reached another way."""

    path: Path
    _held: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> Root:
        try:
            self._held[""] = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(f"{self.path} cannot be opened as a directory: {error.strerror}") from error
        return self

    def __exit__(self, *raised: object) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    @property
    def descriptor(self) -> int:
        """The root itself."""
        return self._held[""]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other applies of this repository out; a killed one keeps nobody out."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(f"another apply is at work in {self.path}") from error
        try:
            yield
        finally:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def place(self, relative: str) -> Place:
        """Return a path's place.

        Raises:
            Refused: where a link or a file stands in the path, or a directory is missing.
        """
        parts = _parts(relative)
        return Place(self._directory(parts[:-1], relative), parts[-1], relative)

    def _directory(self, parts: tuple[str, ...], shown: str) -> int:
        key = "/".join(parts)
        if key not in self._held:
            parent = self._directory(parts[:-1], shown)
            self._held[key] = _open_directory(parent, parts[-1], shown)
        return self._held[key]

    def has_directory(self, relative: str) -> bool:
        """Return whether there is such a directory, reached without a link."""
        try:
            self._directory(_parts(relative), relative)
        except Refused as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return False
            raise
        return True

    def make_directory(self, relative: str) -> None:
        """Make a directory whose parent is there; one that somebody made meanwhile is as good."""
        *above, name = _parts(relative)
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=self._directory(tuple(above), relative))

    def remove_directory(self, relative: str) -> None:
        """Remove a directory that is there and empty."""
        with suppress(OSError, Refused):
            *above, name = _parts(relative)
            os.rmdir(name, dir_fd=self._directory(tuple(above), relative))

    def check_unmoved(self) -> None:
        """Raise Refused where a directory that is held is no longer the one that its path leads to."""
        for key, descriptor in self._held.items():
            walked = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                for part in PurePosixPath(key).parts:
                    inner = _open_directory(walked, part, key)
                    os.close(walked)
                    walked = inner
                if not os.path.samestat(os.fstat(walked), os.fstat(descriptor)):
                    raise Refused(f"{key or self.path} was replaced meanwhile")
            finally:
                os.close(walked)


def _parts(relative: str) -> tuple[str, ...]:
    """Return the names that a path is made of; raise Refused for one that is not of the repository."""
    path = PurePosixPath(relative)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in relative:
        raise Refused(f"{relative!r} leaves the repository")
    return path.parts


def _open_directory(parent: int, name: str, shown: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError as error:
        raise Refused(f"{shown}: there is no directory {name!r}") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused(f"{shown}: {name!r} is a link or a file, not a directory") from error
        raise
