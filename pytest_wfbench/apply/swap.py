"""Two names of one directory exchange their files: at once where the file system can, else by a link and renames."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

from pytest_wfbench.apply.places import Place

Swap = Callable[[Place, Place], None]

OLD = ".old"
_RENAME_EXCHANGE = 2
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})


class Moved(Exception):
    """A file was put in the place of another one while the two were to be exchanged."""


def swap(one: Place, other: Place) -> None:
    """Exchange two files of one directory.

    Raises:
        OSError: when it cannot be done; nothing has changed then.
        Moved: likewise, where somebody else was at the first name.
    """
    try:
        exchange(one, other)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        link_and_rename(one, other)


def exchange(one: Place, other: Place) -> None:
    """Exchange two names by ``renameat2``: each is one file or the other at every instant."""
    library = ctypes.CDLL(None, use_errno=True)
    names = (one.directory, os.fsencode(one.name), other.directory, os.fsencode(other.name))
    if not hasattr(library, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), one.shown)
    if library.renameat2(*names, ctypes.c_uint(_RENAME_EXCHANGE)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), one.shown)


def link_and_rename(one: Place, other: Place) -> None:
    """Exchange two names so that the first is one file or the other at every instant.

    Whoever puts a third file there between the last look and the rename is overwritten: only ``renameat2`` can see it.
    """
    kept = other.beside(other.name + OLD)
    os.link(one.name, kept.name, src_dir_fd=one.directory, dst_dir_fd=kept.directory, follow_symlinks=False)
    before, now = _stat(kept), _stat(one)
    if not os.path.samestat(before, now):
        kept.remove()
        raise Moved(one.shown)
    try:
        os.rename(other.name, one.name, src_dir_fd=other.directory, dst_dir_fd=one.directory)
    except OSError:
        kept.remove()
        raise
    os.rename(kept.name, other.name, src_dir_fd=kept.directory, dst_dir_fd=other.directory)


def settle(one: Place, other: Place, base: str) -> Place | None:
    """Bring what a killed ``link_and_rename`` left to one of its ends.

    Returns:
        what is left of it and is neither a second name of the file nor of the ``base`` digest: somebody's own.
    """
    kept = other.beside(other.name + OLD)
    held = kept.read()
    if held is None:
        return None
    if other.read() is None:
        os.rename(kept.name, other.name, src_dir_fd=kept.directory, dst_dir_fd=other.directory)
        return None
    now = one.read()
    if held.digest != base and (now is None or now.inode != held.inode):
        return kept
    kept.remove()
    return None


def _stat(place: Place) -> os.stat_result:
    return os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
