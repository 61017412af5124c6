"""One conversation with an MCP server: a process of its own for it, and bytes carried to and fro."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress

from pytest_wfbench.sandbox.spec import Command, Finished, Sandbox

_CHUNK = 1 << 16

# Given a descriptor that is to be its standard input and output, the command of a server.
Starter = Callable[[int], Command]


def converse(client: socket.socket, start: Starter, sandbox: Sandbox) -> Finished:
    """Run a server for one client until either has enough.

    The client's socket is not handed over: what passes are bytes, and no descriptor of one sandbox reaches another.
    """
    ours, theirs = socket.socketpair()
    with closing(ours):
        ways = [threading.Thread(target=_carry, args=way, daemon=True) for way in ((client, ours), (ours, client))]
        try:
            with closing(theirs):
                for way in ways:
                    way.start()
                ended = sandbox.run(start(theirs.fileno()))
            # What the server said last is still on its way; then the client's end ends the other direction.
            ways[1].join()
        finally:
            _hang_up(client)
        ways[0].join()
    return ended


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, and say so to the target."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _hang_up(channel: socket.socket) -> None:
    with suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
