"""HTTP over unix sockets, as door and tap both speak it."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientConnectionError, ClientSession, ClientTimeout, DummyCookieJar, UnixConnector, web

from pytest_wfbench.gateway.answers.base import compact

MAX_BODY = 64 << 20
# More than any agent opens; less than keeps others from theirs.
CONNECTIONS = 128
# How long what is left of a refused body is still read, so that the refusal is.
LINGER_SECONDS = 0.5

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class TooLarge(Exception):
    """A body beyond the limit."""


async def read_body(request: web.BaseRequest, limit: int, take: Callable[[int], None] = lambda _: None) -> bytes:
    """Return a request's body. Raises TooLarge, as ``take`` may, which is told the size of each piece."""
    chunks, size = [], 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        take(len(chunk))
        if size > limit:
            raise TooLarge(f"the body has more than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def error_response(status: int, kind: str, message: str) -> web.Response:
    """Return an error that the clients of every provider can read."""
    body = {"type": "error", "error": {"type": kind, "message": message, "param": None, "code": kind}}
    return web.Response(status=status, body=compact(body), content_type="application/json")


@dataclass
class Passage:
    """The way back to a client who may have gone: what cannot be delivered is dropped, and ``gone`` says so."""

    request: web.BaseRequest
    response: web.StreamResponse
    gone: bool = False

    async def open(self) -> None:
        """Send the head."""
        await self._deliver(self.response.prepare(self.request))

    async def write(self, chunk: bytes) -> None:
        """Send some of the body."""
        if self.request.transport is None or self.request.transport.is_closing():
            self.gone = True
        if not self.gone:
            await self._deliver(self.response.write(chunk))

    async def close(self) -> None:
        """Send the end."""
        if not self.gone:
            await self._deliver(self.response.write_eof())

    def abort(self) -> None:
        """Break the connection, so that the client sees that the answer is not whole."""
        if self.request.transport is not None:
            self.request.transport.abort()

    async def _deliver(self, sending: Awaitable[object]) -> None:
        try:
            await sending
        except (ConnectionError, ClientConnectionError):
            self.gone = True


@dataclass(frozen=True)
class Listener:
    """A handler behind a unix socket."""

    path: Path
    web_server: web.Server
    server: asyncio.Server

    async def close(self, seconds: float) -> None:
        """Take the socket away and end its connections: idle ones at once, busy ones after ``seconds`` (above 0)."""
        self.server.close()
        self.path.unlink(missing_ok=True)
        self.web_server.pre_shutdown()
        await self.web_server.shutdown(seconds)


class _Bounded(web.Server):
    """Ends a connection that is one too many: who opens so many does not read an answer."""

    def __init__(self, handler: Handler, most: int) -> None:
        super().__init__(handler, access_log=None, lingering_time=LINGER_SECONDS)
        self._most = most

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        """Take a connection in."""
        super().connection_made(handler, transport)
        if len(self.connections) > self._most:
            transport.abort()


async def listen(
    path: Path,
    handler: Handler,
    mode: int = 0o600,
    owner: tuple[int, int] | None = None,
    connections: int = sys.maxsize,
) -> Listener:
    """Serve a handler on a new unix socket of this mode and owner (uid, gid), for so many ``connections`` at once."""
    web_server = _Bounded(handler, connections)
    server = await asyncio.get_running_loop().create_unix_server(web_server, path=str(path), backlog=512)
    path.chmod(mode)
    if owner is not None:
        os.chown(path, *owner)
    return Listener(path, web_server, server)


def raise_descriptor_limit() -> None:
    """Let this process have as many descriptors as it may: each request takes four."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def unix_client(path: Path) -> ClientSession:
    """Return a client whose every request goes to one unix socket, whatever its URL's host."""
    connector = UnixConnector(path=str(path), limit=0)
    timeout = ClientTimeout(total=None, sock_connect=10)
    return ClientSession(connector=connector, timeout=timeout, cookie_jar=DummyCookieJar(), auto_decompress=False)
