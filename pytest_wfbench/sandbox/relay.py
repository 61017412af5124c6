"""The way from a sandbox's loopback to the gateway's socket.

It is imported by the first process of the sandbox, and takes what was imported there already.
"""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket as Socket

_CHUNK = 1 << 16
_HIGH_WATER = 1 << 18


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


class Relay:
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
        """Do what a descriptor is ready for, if it is one of the relay's."""
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
