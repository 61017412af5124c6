"""Spans to an OTLP receiver over HTTP, in protobuf: after the sweep, in bounded time, headers from the environment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pytest_wfbench import __version__
from pytest_wfbench.traces.spans import CellTrace, Span, all_spans

if TYPE_CHECKING:
    import httpx
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

PATH = "/v1/traces"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
TYPE = "application/x-protobuf"
BATCH = 500
TRIES = 3
TIMEOUT = 10.0
DEADLINE = 60.0
LONGEST_WAIT = 10.0
PASSING = frozenset({429, 502, 503, 504})


class BadEndpoint(ValueError):
    """An address that is no receiver's; the message says what is wrong."""


class NotSent(Exception):
    """Traces that did not arrive, or not all of them. The message is one line."""


@dataclass(frozen=True)
class Sent:
    """How many cells and spans were taken."""

    cells: int
    spans: int


def endpoint_of(text: str) -> str:
    """Return the address that spans are posted to: ``/v1/traces`` is added once.

    Raises:
        BadEndpoint: for anything but an http or https address without a name or password in it.
    """
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or "@" in parts.netloc or parts.query or parts.fragment or not text.isprintable() or " " in text:
        raise BadEndpoint("it is no http or https address without a name, a password or a query in it")
    whole = text.rstrip("/")
    return whole if whole.endswith(PATH) else whole + PATH


def headers_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that ``OTEL_EXPORTER_OTLP_HEADERS`` asks for: ``name=value,…``, values percent-encoded.

    Raises:
        BadEndpoint: when it does not read. The message shows no value.
    """
    found: dict[str, str] = {}
    for part in environ.get(HEADERS, "").split(","):
        name, equals, value = part.strip().partition("=")
        if not part.strip():
            continue
        header, text = name.strip(), unquote(value.strip())
        if not equals or not header.isascii() or not header.replace("-", "").isalnum() or not text.isprintable():
            raise BadEndpoint(f"{HEADERS} does not read: write name=value,name=value")
        found[header] = text
    return found


def send_traces(traces: Iterable[CellTrace], sweep_id: str, endpoint: str, environ: Mapping[str, str]) -> Sent:
    """Send everything, in batches, within ``DEADLINE`` seconds. Sent again, spans have the same ids.

    Raises:
        NotSent: when the receiver cannot be reached, refuses, or took only a part.
        BadEndpoint: when the address or the headers do not read.
    """
    # Of many sweeps few send any.
    import httpx

    address, headers = endpoint_of(endpoint), headers_of(environ)
    kept = list(traces)
    spans = list(all_spans(kept))
    deadline = time.monotonic() + DEADLINE
    rejected = 0
    with httpx.Client(headers={**headers, "Content-Type": TYPE}, timeout=TIMEOUT) as client:
        for start in range(0, len(spans), BATCH):
            rejected += _post(client, address, request_bytes(spans[start : start + BATCH], sweep_id), deadline)
    if rejected:
        raise NotSent(f"{address} took {len(spans) - rejected} of {len(spans)} spans")
    return Sent(len(kept), len(spans))


def _post(client: httpx.Client, address: str, body: bytes, deadline: float) -> int:
    """Post one batch and return how many spans of it were refused."""
    import httpx

    said = "no answer"
    for number in range(TRIES):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            answer = client.post(address, content=body, timeout=min(TIMEOUT, left))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = str(error) or type(error).__name__
        else:
            if answer.is_success:
                return _rejected(answer)
            said = f"HTTP {answer.status_code}"
            if answer.status_code not in PASSING:
                break
        time.sleep(max(0.0, min(0.2 * 2**number, deadline - time.monotonic(), LONGEST_WAIT)))
    raise NotSent(f"{address} did not take the traces: {said}")


def _rejected(answer: httpx.Response) -> int:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    if answer.headers.get("content-type", "").partition(";")[0].strip() != TYPE:
        return 0
    try:
        return int(ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans)
    except DecodeError:
        return 0


def request_bytes(spans: Iterable[Span], sweep_id: str) -> bytes:
    """Return the body of one export request."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    about = {"service.name": "pytest-wfbench", "service.version": __version__, "wfbench.sweep.id": sweep_id}
    resource.resource.attributes.extend(_attributes(about))
    scope = resource.scope_spans.add()
    scope.scope.name, scope.scope.version = "pytest_wfbench", __version__
    scope.spans.extend(_message(span) for span in spans)
    return bytes(request.SerializeToString())


def _message(span: Span) -> Message:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
    from opentelemetry.proto.trace.v1.trace_pb2 import Status

    codes = {"unset": Status.STATUS_CODE_UNSET, "ok": Status.STATUS_CODE_OK, "error": Status.STATUS_CODE_ERROR}
    kinds = {"internal": Message.SPAN_KIND_INTERNAL, "client": Message.SPAN_KIND_CLIENT}
    return Message(
        trace_id=bytes.fromhex(span.trace),
        span_id=bytes.fromhex(span.id),
        parent_span_id=bytes.fromhex(span.parent or ""),
        name=_clean(span.name),
        kind=kinds[span.kind],
        start_time_unix_nano=span.start,
        end_time_unix_nano=span.end,
        attributes=list(_attributes(span.attributes)),
        status=Status(code=codes[span.status], message=_clean(span.message)),
    )


def _attributes(named: Mapping[str, str | int | float | bool | tuple[str, ...]]) -> Iterator[KeyValue]:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

    for name, value in named.items():
        match value:
            case bool():
                held = AnyValue(bool_value=value)
            case int():
                held = AnyValue(int_value=value)
            case float():
                held = AnyValue(double_value=value)
            case str():
                held = AnyValue(string_value=_clean(value))
            case tuple():
                held = AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=_clean(t)) for t in value]))
        yield KeyValue(key=name, value=held)


def _clean(text: str) -> str:
    """Protobuf has no lone surrogates."""
    return text.encode("utf-8", "replace").decode()
