"""The first process of a command on the host, where no namespace ends with it: it ends what the command started.

Run by the bare interpreter; needs the standard library and ``init`` only. The process that the harness starts, and
may kill, waits for this one, which is out of reach of that, and is told of it by the end of its control pipe.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import signal
import time
from typing import TYPE_CHECKING

from pytest_wfbench.sandbox import init

if TYPE_CHECKING:
    from socket import socket as Socket

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 2.0


def guard(private: str, cwd: str, listener: int, order: init.Order) -> int:
    """Run the command in ``cwd`` and return its status.

    ``listener`` is a listening socket's descriptor, or -1; ``private`` the command's directory, which is removed here
    if the harness, whose it is, is no more.
    """
    pid = os.fork()
    if pid:
        for descriptor in (order.control, order.report):
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return 128 - code if code < 0 else code
    status = 125
    try:
        status = _first(cwd, listener, order)
    finally:
        end_all()
        if _is_alone(order.control):
            os.spawnv(os.P_WAIT, "/bin/rm", ["rm", "-rf", "--", private])
        os._exit(status)


def _first(cwd: str, listener: int, order: init.Order) -> int:
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        os.chdir(cwd)
    except OSError as error:
        os.write(order.report, f"fail {error}\n".encode())
        return 125
    return init.carry_out(order, _socket(listener) if listener >= 0 else None)


def _socket(descriptor: int) -> Socket:
    import socket

    os.set_inheritable(descriptor, False)
    listener = socket.socket(fileno=descriptor)
    listener.setblocking(False)
    return listener


def _is_alone(control: int) -> bool:
    os.set_blocking(control, False)
    try:
        return not os.read(control, 1)
    except BlockingIOError:
        return False


def end_all() -> None:
    """Kill every descendant: those whose parent is gone are children of this process."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        for pid in _children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children() -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    parent = int(stream.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            if parent == os.getpid():
                found.append(int(name))
    return found


def main(descriptor: str) -> int:
    """Read what ``guard`` is to do, and do it."""
    with os.fdopen(int(descriptor), "rb") as stream:
        private, cwd, listener, order = marshal.load(stream)
    return guard(private, cwd, listener, init.Order(*order))
