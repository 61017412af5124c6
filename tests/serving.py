"""HTTP servers on this machine, at a port or a unix socket: one function says what each request is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What was asked; the names of ``headers`` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """What is answered; its length is told by the server."""

    body: bytes = b""
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def serve(answer: Callable[[Request], Response], door: Path | None = None, protocol: str = "HTTP/1.0") -> Iterator[str]:
    """Serve at ``door``, else on a free port, and yield the address without a last slash; at a door there is none."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = protocol

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = answer(Request(self.command, self.path, headers, body))
            self.send_response(reply.status)
            length = {"content-type": reply.kind, "content-length": str(len(reply.body))}
            for name, value in (length | dict(reply.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _do

        def address_string(self) -> str:
            return "here"

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingUnixStreamServer(str(door), Handler) if door else ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield "" if door else f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
