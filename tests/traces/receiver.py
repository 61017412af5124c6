"""An OTLP receiver: it decodes what is posted with the protocol's own types."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.serving import Request, Response, serve

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

    def answer(request: Request) -> Response:
        status = state.take(request.path, dict(request.headers), request.body)
        partial = ExportTracePartialSuccess(rejected_spans=state.refused)
        data = ExportTraceServiceResponse(partial_success=partial).SerializeToString() if status == 200 else b""
        return Response(data, TYPE, status)

    with serve(answer) as state.root:
        yield state
