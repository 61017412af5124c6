"""The first process of a sandbox: init, resource limits, and the way from loopback to the gateway's socket.

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
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from socket import socket as Socket

    Words = tuple[str, ...]
    Plain = tuple[Words, tuple[tuple[str, str], ...], tuple[tuple[int, int], ...], str, int, int, int, Words]
else:
    # The module of the same name turns its numbers into enumerations, which costs more than all else here.
    import _signal as signal

LINGER = 0.25
STOP = b"t"
_CHUNK = 1 << 16
_HIGH_WATER = 1 << 18
_PR_SET_DUMPABLE = 4


class Order:
    """What the init is to do. ``gateway`` is the path of a unix socket, or empty; ``control`` and ``report`` are
    descriptors: a byte ``STOP`` on the first asks for a graceful end, its end of file says that the harness is gone."""

    def __init__(
        self,
        argv: tuple[str, ...],
        env: tuple[tuple[str, str], ...],
        limits: tuple[tuple[int, int], ...],
        gateway: str,
        port: int,
        control: int,
        report: int,
        private: tuple[str, ...] = (),
    ) -> None:
        self.argv = argv
        self.env = env
        self.limits = limits
        self.gateway = gateway
        self.port = port
        self.control = control
        self.report = report
        self.private = private

    def plain(self) -> Plain:
        """Return the fields in the order in which the class takes them, for ``marshal``."""
        return (self.argv, self.env, self.limits, self.gateway, self.port, self.control, self.report, self.private)


class _Side:
    """One socket of a forwarded connection, and the bytes that wait to be written to it."""

    def __init__(self, channel: Socket) -> None:
        self.channel = channel
        self.pending = bytearray()
        self.ended = False
        self.shut = False
        self.mask = 0
        self.peer = self

    def wanted(self) -> int:
        """Read while the peer keeps up, write while there is something to write."""
        reading = not self.ended and len(self.peer.pending) < _HIGH_WATER
        return (select.EPOLLIN if reading else 0) | (select.EPOLLOUT if self.pending else 0)

    def read(self) -> None:
        data = self.channel.recv(_CHUNK)
        self.peer.pending += data
        self.ended = not data
        self.peer.flush()

    def flush(self) -> None:
        """Write what can be written; once the other side has ended, say so, and keep this side's answers coming."""
        if self.pending:
            try:
                del self.pending[: self.channel.send(self.pending)]
            except BlockingIOError:
                return
        if self.peer.ended and not self.pending and not self.shut:
            self.shut = True
            self.channel.shutdown(1)

    @property
    def done(self) -> bool:
        return self.ended and self.shut


class _Relay:
    """Forwards every connection to a listening socket to the gateway's socket, bytes and half-closes alike."""

    def __init__(self, poll: select.epoll, gateway: str, listener: Socket) -> None:
        import socket

        self._socket = socket
        self._poll = poll
        self._gateway = gateway
        self._sides: dict[int, _Side] = {}
        self._listener = listener
        poll.register(listener, select.EPOLLIN)

    def handle(self, descriptor: int, events: int) -> None:
        if descriptor == self._listener.fileno():
            self._accept()
        elif (side := self._sides.get(descriptor)) is not None:
            self._move(side, events)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        try:
            client.setsockopt(self._socket.IPPROTO_TCP, self._socket.TCP_NODELAY, 1)
            door = self._socket.socket(self._socket.AF_UNIX, self._socket.SOCK_STREAM)
        except OSError:
            client.close()
            return
        door.settimeout(2.0)
        try:
            door.connect(self._gateway)
        except OSError:
            client.close()
            door.close()
            return
        one, other = _Side(client), _Side(door)
        one.peer, other.peer = other, one
        for side in (one, other):
            side.channel.setblocking(False)
            self._sides[side.channel.fileno()] = side
            self._update(side)

    def _move(self, side: _Side, events: int) -> None:
        try:
            if events & select.EPOLLOUT:
                side.flush()
            if events & ~select.EPOLLOUT:
                side.read()
        except BlockingIOError:
            pass
        except OSError:
            self._drop(side)
            return
        if side.done and side.peer.done:
            self._drop(side)
            return
        self._update(side)
        self._update(side.peer)

    def _update(self, side: _Side) -> None:
        """Ask for what is wanted. With nothing wanted it is not watched at all: a hang-up is reported always."""
        wanted, descriptor = side.wanted(), side.channel.fileno()
        if wanted == side.mask:
            return
        if not wanted:
            self._poll.unregister(descriptor)
        elif not side.mask:
            self._poll.register(descriptor, wanted)
        else:
            self._poll.modify(descriptor, wanted)
        side.mask = wanted

    def _drop(self, side: _Side) -> None:
        for one in (side, side.peer):
            if one.mask:
                self._poll.unregister(one.channel.fileno())
            del self._sides[one.channel.fileno()]
            one.channel.close()


def listen(port: int) -> Socket:
    """Return a socket that listens on ``127.0.0.1``, on a free port if it is 0."""
    import socket

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener


def main(order: Order, listener: Socket | None = None) -> int:
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
        relay = _Relay(poll, order.gateway, listener or listen(order.port)) if order.gateway else None
        child = _start(order)
    except OSError as error:
        os.write(order.report, f"fail {error}\n".encode())
        return 125
    os.write(order.report, b"run %d\n" % time.monotonic_ns())
    return _loop(order, poll, relay, wake, child)


def _loop(order: Order, poll: select.epoll, relay: _Relay | None, wake: int, child: int) -> int:
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
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
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


def _hide() -> None:
    """Let no process of the sandbox trace this one or open its descriptors: they are of the same uid."""
    if TYPE_CHECKING:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    else:
        # What ctypes itself stands on, at a tenth of its price.
        import _ctypes

        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"), (_PR_SET_DUMPABLE, 0, 0, 0, 0))


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "rb") as _stream:
        _order = Order(*marshal.load(_stream))
    sys.exit(main(_order))
