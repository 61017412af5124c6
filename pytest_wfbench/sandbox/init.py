"""The first process of a sandbox: it starts a command under its limits, and reaps until all of it has ended.

It runs alone in the sandbox (``python -I -S``), so it imports the standard library only, and little of it: every
module costs each cell a millisecond. An ``Order`` reaches it through a descriptor, what it saw goes back through
another, a line each: ``run T`` when the command was started, ``end T`` when it had ended (nanoseconds of the monotonic
clock), ``full PATH`` if it failed and a private directory has no space left, ``left N`` with N = 1 if processes
outlived it, or ``fail TEXT`` when there never was a command.
"""

from __future__ import annotations

import errno
import marshal
import os
import resource
import select
import time

from pytest_wfbench.sandbox.plain import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from socket import socket as Socket

    from pytest_wfbench.sandbox.relay import Relay
else:
    # The module of the same name turns its numbers into enumerations, which costs more than all else here.
    import _signal as signal

LINGER = 0.25
STOP = b"t"
_PR_SET_DUMPABLE = 4


class Order(Record):
    """What the init is to do. ``gateway`` is the path of a unix socket, or empty; ``control`` and ``report`` are
    descriptors: a byte ``STOP`` on the first asks for a graceful end, its end of file says that the harness is gone.
    Of the ``private`` directories it says whether one is full."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    limits: tuple[tuple[int, int], ...]
    gateway: str
    port: int
    control: int
    report: int
    private: tuple[str, ...] = ()


def main(descriptor: str) -> int:
    """Read an order and carry it out."""
    with os.fdopen(int(descriptor), "rb") as stream:
        order = Order(*marshal.load(stream))
    return carry_out(order)


def carry_out(order: Order, listener: Socket | None = None) -> int:
    """Listen, run the command, forward and reap until it ended, and return its status (128 + n for signal n).

    ``listener`` is a socket that listens already; else one is made on ``order.port`` where there is a gateway.
    """
    _hide()
    for descriptor in (order.control, order.report):
        os.set_inheritable(descriptor, False)
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # A signal that the first process has no handler for cannot reach it from inside.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    poll = select.epoll()
    poll.register(wake, select.EPOLLIN)
    poll.register(order.control, select.EPOLLIN)
    try:
        relay = _relay(order, poll, listener) if order.gateway else None
        child = _start(order)
    except OSError as error:
        os.write(order.report, f"fail {error}\n".encode())
        return 125
    os.write(order.report, b"run %d\n" % time.monotonic_ns())
    return _loop(order, poll, relay, wake, child)


def _relay(order: Order, poll: select.epoll, listener: Socket | None) -> Relay:
    from pytest_wfbench.sandbox.relay import Relay, listen

    return Relay(poll, order.gateway, listener or listen(order.port))


def _loop(order: Order, poll: select.epoll, relay: Relay | None, wake: int, child: int) -> int:
    status: int | None = None
    until = float("inf")
    others = True
    while others and (left := until - time.monotonic()) > 0:
        for descriptor, events in poll.poll(left if left < 3600 else -1):
            if descriptor == wake:
                os.read(wake, 512)
            elif descriptor == order.control:
                if os.read(order.control, 1) != STOP:
                    return 137
                _terminate(child, status)
            elif relay is not None:
                relay.handle(descriptor, events)
        ended, others = _reap(child)
        if ended is not None:
            status, until = ended, time.monotonic() + LINGER
            os.write(order.report, b"end %d\n" % time.monotonic_ns())
            if status and (full := _full(order.private)):
                os.write(order.report, f"full {full}\n".encode())
    os.write(order.report, b"left %d\n" % others)
    return 137 if status is None else status


def _full(directories: tuple[str, ...]) -> str:
    """Return the first directory whose file system has no space, or no room for a file, left; else nothing."""
    for directory in directories:
        found = os.statvfs(directory)
        if not found.f_bfree or not found.f_ffree:
            return directory
    return ""


def _terminate(child: int, status: int | None) -> None:
    """Ask the command's group to stop. What does not is killed from outside, with this process."""
    if status is None:
        try:
            os.killpg(child, signal.SIGTERM)
        except ProcessLookupError:
            return


def _reap(child: int) -> tuple[int | None, bool]:
    """Reap all that ended; return the command's status if it did, and whether anything still lives."""
    status = None
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, False
        if pid == 0:
            return status, True
        if pid == child:
            code = os.waitstatus_to_exitcode(raw)
            status = 128 - code if code < 0 else code


def _start(order: Order) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _forget_signals()
        os.umask(0o022)
        for kind, value in order.limits:
            hard = resource.getrlimit(kind)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
        os.execvpe(order.argv[0], list(order.argv), dict(order.env))
    except OSError as error:
        os.write(2, f"{order.argv[0]}: {error.strerror}\n".encode())
        os._exit(127 if error.errno == errno.ENOENT else 126)
    finally:
        os._exit(125)


def _forget_signals() -> None:
    """Undo what was ignored or blocked before: pytest under ``nohup``, or in the background, ignores some signals."""
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _hide() -> None:
    """Let no process of the sandbox trace this one or open its descriptors: they are of the same uid."""
    if TYPE_CHECKING:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    else:
        # What ctypes itself stands on, at a tenth of its price.
        import _ctypes

        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"), (_PR_SET_DUMPABLE, 0, 0, 0, 0))
