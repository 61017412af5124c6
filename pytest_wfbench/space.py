"""Disks that are full: how that is told, and space set aside for saying so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FLOOR = 1 << 20
RESERVE = ".reserve"


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that a disk has no space left, or no more of it for this user."""
    return isinstance(error, OSError) and error.errno in FULL


def require_room(directory: Path, floor: int = FLOOR) -> None:
    """Raise OSError (ENOSPC) where fewer than ``floor`` bytes, or no files, can be added to a directory's disk."""
    disk = os.statvfs(directory)
    if disk.f_bavail * disk.f_frsize < floor or (disk.f_files > 0 and disk.f_favail == 0):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))


def because(error: OSError, directory: Path) -> str:
    """Return in one line what an error says of what was to be written below a directory, with the remedy."""
    remedy = "Free some space there" if error.errno in FULL else "Make it writable"
    return f"{directory} cannot be written: {error.strerror or error}. {remedy}, then run the sweep again"


class Reserve:
    """Space in a directory that is given back once there is no other, for what must still be written then."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESERVE

    def take(self, size: int) -> None:
        """Set ``size`` bytes aside. Raises OSError where there are not as many."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(descriptor)

    def give_back(self) -> bool:
        """Free them; whether there were any."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
