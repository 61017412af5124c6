"""Whether somebody has a file open for writing, told by the kernel: such an edit would be lost with the file."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from pytest_wfbench.apply.places import Place

PATIENCE = 2.0


class InUse(Exception):
    """Somebody has the file open for writing, and keeps it so."""


def await_writers(place: Place) -> None:
    """Return once nobody has a file open for writing, as far as its file system tells.

    Raises:
        InUse: where somebody has, for as long as is waited.
    """
    end = time.monotonic() + PATIENCE
    while not _unwritten(place):
        if time.monotonic() > end:
            raise InUse(f"{place.shown} is open for writing in another program")
        time.sleep(0.05)


def _unwritten(place: Place) -> bool:
    """A read lease is given only where there is no writer; it ends with the descriptor."""
    descriptor = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.directory)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN
    finally:
        os.close(descriptor)
    return True
