"""The agent's side of an MCP server: its standard streams joined to a unix socket.

The agent starts it in its own sandbox (``python3 -I -S``) as if it were the server; it needs the standard library only.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

_CHUNK = 1 << 16


def join(path: str) -> int:
    """Copy standard input to the socket at ``path`` and what comes back to standard output, until the server ends."""
    channel = socket.socket(socket.AF_UNIX)
    try:
        channel.connect(path)
    except OSError as error:
        sys.stderr.write(f"no MCP server: {error.strerror}\n")
        return 1
    threading.Thread(target=_send, args=(channel,), daemon=True).start()
    while data := channel.recv(_CHUNK):
        while data:
            data = data[os.write(1, data) :]
    return 0


def _send(channel: socket.socket) -> None:
    try:
        while data := os.read(0, _CHUNK):
            channel.sendall(data)
        channel.shutdown(socket.SHUT_WR)
    except OSError:
        return


if __name__ == "__main__":
    # The thread may be blocked in a read for ever.
    os._exit(join(sys.argv[1]))
