"""A process that does not outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel for a signal when the thread that started this process ends; exit at once if it already has.

    Memory that holds keys is kept from being dumped or read by others of the same user.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


def when_input_ends(leave: Callable[[], None], grace: float) -> None:
    """Call ``leave`` in a thread once standard input ends, and exit ``grace`` seconds later if that was not enough.

    The parent holds the only other end of the pipe, so its end is the parent's. A thread sees it even where the event
    loop is stuck.
    """

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1 << 16):
            pass
        leave()
        time.sleep(grace)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def first_line() -> bytes:
    """Read one line of standard input and not a byte beyond it."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
        line += byte
    return line
