"""An OTLP receiver: it decodes what is posted with the protocol's own types."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TYPE = "application/x-protobuf"


@dataclass
class Receiver:
    """What arrived. ``statuses`` are answered first, one a request; ``refused`` spans are told in each answer."""

    root: str = ""
    statuses: list[int] = field(default_factory=list)
    refused: int = 0
    stall: float = 0.0
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        return [span for request in self.requests for resource in request.resource_spans
                for scope in resource.scope_spans for span in scope.spans]  # fmt: skip

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        time.sleep(self.stall)
        self.asked.append(path)
        self.headers.append(headers)
        if self.statuses and (status := self.statuses.pop(0)) != 200:
            return status
        if path != "/v1/traces":
            return 404
        if headers.get("content-type") != TYPE:
            return 415
        self.bodies.append(body)
        self.requests.append(ExportTraceServiceRequest.FromString(body))
        return 200


def plain(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    return {a.key: getattr(a.value, a.value.WhichOneof("value") or "") for a in span.attributes}


@contextmanager
def receiving(receiver: Receiver | None = None) -> Iterator[Receiver]:
    """Serve on a free port of this machine."""
    state = receiver or Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = state.take(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            partial = ExportTracePartialSuccess(rejected_spans=state.refused)
            data = ExportTraceServiceResponse(partial_success=partial).SerializeToString() if status == 200 else b""
            self.send_response(status)
            self.send_header("Content-Type", TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
