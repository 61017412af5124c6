"""The near side of LiteLLM: one socket a session, and a filter on what may pass it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, web

from pytest_wfbench.gateway.api import Claims, Conversation
from pytest_wfbench.gateway.calls import Call, Calls, Session
from pytest_wfbench.gateway.conversation import read_conversation
from pytest_wfbench.gateway.fallback import unseen
from pytest_wfbench.gateway.filter import ROUTES, Admitted, Refused, admit, most_output, read_claims
from pytest_wfbench.gateway.filter import Route as Way
from pytest_wfbench.gateway.gate import Gate
from pytest_wfbench.gateway.http import MAX_BODY, Passage, TooLarge, error_response, read_body
from pytest_wfbench.gateway.keys import verify
from pytest_wfbench.gateway.load import check_values
from pytest_wfbench.gateway.meter import Meter
from pytest_wfbench.gateway.proxy import litellm_name
from pytest_wfbench.gateway.roads import Patience
from pytest_wfbench.gateway.tap import CALL_HEADER, Tap
from pytest_wfbench.wires import UNSEEN

PROTOCOL_HEADERS = ("anthropic-version", "anthropic-beta", "accept")
PASSED_BACK = ("content-type", "content-length", "retry-after")
# Names of dropped keys are the client's invention: what is kept of them is bounded.
DROPPED_NAMES, DROPPED_CLIP, DROPPED_REST = 50, 60, "(others)"
ERROR_LIMIT, ERROR_SHOWN = 64 << 10, 2000
UNSCRIPTED = frozenset({"judge", "preflight"})


@dataclass(frozen=True)
class DoorKeeper:
    """What every door has in common. ``proxy_key`` is the per-sweep secret that LiteLLM takes."""

    calls: Calls
    tap: Tap
    proxy: ClientSession
    proxy_key: str
    signing_key: bytes
    gate: Gate

    async def handle(self, session: Session, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request on a session's socket."""
        try:
            return await self._answer(session, request)
        except Refused as refusal:
            session.refused += 1
            return error_response(refusal.status, refusal.kind, refusal.message)

    async def _answer(self, session: Session, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if (request.method, path) == ("HEAD", "/"):
            return web.Response(status=200)
        if session.closed:
            raise Refused(403, "permission_error", "the session is over")
        if not verify(self.signing_key, session.claim, _key(request.headers), time.monotonic()):
            raise Refused(403, "authentication_error", "the key is not this session's, or has expired")
        if (request.method, path) == ("GET", "/v1/models"):
            return _models(session)
        way = ROUTES.get(path)
        if way is None or request.method != "POST":
            raise Refused(403, "permission_error", f"{request.method} {path} does not pass this gateway")
        with session.load.carry() as take:
            return await self._pass(session, way, request, await _json_body(request, take))

    async def _pass(
        self, session: Session, way: Way, request: web.BaseRequest, body: Mapping[str, Any]
    ) -> web.StreamResponse:
        admitted = admit(way, body, session.request.models, session.request.provider_tools)
        _count_dropped(session, admitted.dropped)
        call = self._open(session, way, admitted, request.headers, body)
        try:
            if way.kind == "count":
                return await self._count(call, admitted, request)
            return await self._forward(call, way, admitted, request)
        finally:
            call.leave_door()

    def _open(
        self, session: Session, way: Way, admitted: Admitted, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> Call:
        session_id, agent_id = read_claims(headers, body)
        claims = Claims(session_id=session_id, agent_id=agent_id)
        kind = _conversation(session, way, admitted, agent_id)
        call = self.calls.open(session, session.targets[admitted.model], admitted.model, claims, kind)
        call.max_output, call.body_bytes = most_output(admitted.body), len(json.dumps(admitted.body))
        return call

    async def _count(self, call: Call, admitted: Admitted, request: web.BaseRequest) -> web.StreamResponse:
        body = admitted.body | {"model": call.target.model}
        return await self.tap.count_tokens(request, call, _protocol_headers(request.headers), body)

    async def _forward(self, call: Call, way: Way, admitted: Admitted, request: web.BaseRequest) -> web.StreamResponse:
        headers = _protocol_headers(request.headers) | {
            "authorization": f"Bearer {self.proxy_key}",
            "accept-encoding": "identity",
            CALL_HEADER: call.id,
            "x-litellm-call-id": call.id,
        }
        model = litellm_name(call.target.provider, call.target.model, way.wire)
        body = json.dumps(admitted.body | {"model": model}).encode()
        patience = Patience()
        try:
            while True:
                await self.gate.admit(call, partial(_has_gone, request))
                async with self.proxy.post(f"http://proxy{request.path}", data=body, headers=headers) as answer:
                    if not self.gate.repeats(call, answer.status, patience):
                        response = await _pass_back(self, call, way, request, answer)
                        await self._look_behind(call, answer.status)
                        return response
                call.give_place_back()
        except (ClientError, TimeoutError) as error:
            if call.attempts == call.sent:
                call.session.record(self._unsent(call, None, f"the proxy does not answer: {error}"))
            return error_response(502, "api_error", "the gateway's proxy does not answer")

    async def _look_behind(self, call: Call, status: int) -> None:
        """An answer that no request through the tap was made for is told by LiteLLM's own report."""
        if status < 400 and call.attempts == call.sent:
            meter = Meter(call, UNSEEN, 1, self.tap.redact)
            meter.status = status
            call.session.record(await unseen(call.report, meter))

    def _unsent(self, call: Call, status: int | None, message: str) -> Any:
        """Return the record of a call that failed in the proxy, before any request to the provider."""
        meter = Meter(call, UNSEEN, 0, self.tap.redact)
        meter.status = status
        return meter.event(error=message)


async def _pass_back(
    keeper: DoorKeeper, call: Call, way: Way, request: web.BaseRequest, answer: ClientResponse
) -> web.StreamResponse:
    headers = {name: answer.headers[name] for name in PASSED_BACK if name in answer.headers}
    if (retry_after := call.heard[1]) is not None:
        headers["retry-after"] = retry_after
    if answer.status >= 400:
        return await _fail(keeper, call, answer, headers)
    passage = Passage(request, web.StreamResponse(status=answer.status, headers=headers))
    await passage.open()
    try:
        async for chunk in answer.content.iter_any():
            await passage.write(chunk)
            if passage.gone:
                # Leaving closes the way to LiteLLM; the tap notices, and drains the provider.
                return passage.response
    except (ClientError, TimeoutError):
        passage.abort()
        return passage.response
    await passage.close()
    return passage.response


async def _fail(
    keeper: DoorKeeper, call: Call, answer: ClientResponse, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Pass an error back. LiteLLM words it, so it may name what only this process is to know.

    It may also repeat the request many times over: to look through all of that would keep everybody waiting.
    """
    said = await answer.content.read(ERROR_LIMIT + 1)
    while len(said) <= ERROR_LIMIT and (more := await answer.content.read(ERROR_LIMIT + 1 - len(said))):
        said += more
    text = keeper.tap.redact(said[:ERROR_LIMIT].decode(errors="replace"))
    if call.attempts == call.sent:
        call.session.record(keeper._unsent(call, answer.status, text))
    kept = {name: value for name, value in headers.items() if name != "content-length"}
    if len(said) > ERROR_LIMIT:
        short = error_response(answer.status, "api_error", text[:ERROR_SHOWN])
        short.headers.update({name: value for name, value in kept.items() if name != "content-type"})
        return short
    return web.Response(status=answer.status, body=text.encode(errors="replace"), headers=kept)


def _has_gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _count_dropped(session: Session, names: Iterable[str]) -> None:
    for name in names:
        clipped = name[:DROPPED_CLIP]
        known = clipped in session.dropped or len(session.dropped) < DROPPED_NAMES
        session.dropped[clipped if known else DROPPED_REST] += 1


def _protocol_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return what a client may say of the protocol. The body is JSON whatever the client calls it.

    LiteLLM would read it as a form under that name, and a form's text can hold keys that the filter never saw.
    """
    kept = {name: headers[name] for name in PROTOCOL_HEADERS if name in headers}
    return kept | {"content-type": "application/json"}


def _key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()


async def _json_body(request: web.BaseRequest, take: Callable[[int], None]) -> Any:
    try:
        body = await read_body(request, MAX_BODY, take)
        check_values(body)
        return json.loads(body.decode("utf-8-sig", "surrogatepass"), parse_constant=_no_number)
    except TooLarge as error:
        raise Refused(413, "request_too_large", str(error)) from None
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_request_error", "the body is not JSON") from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _conversation(session: Session, way: Way, admitted: Admitted, agent_id: str | None) -> Conversation:
    """Say which conversation a request belongs to; a judge or a preflight only ever has the one."""
    if session.request.labels.session in UNSCRIPTED:
        return "main"
    spoken = read_conversation(way.wire, admitted.body)
    if spoken.wants_title:
        return "title"
    script = session.targets[admitted.model].script
    return "subagent" if agent_id or (script and script.subagent_of(spoken.opening)) else "main"


def _models(session: Session) -> web.Response:
    """List the session's models, in the shape of both families' clients."""
    entries = [
        {"id": name, "object": "model", "type": "model", "display_name": name, "created": 0, "owned_by": "wfbench"}
        for name in session.request.models
    ]
    body = {"object": "list", "data": entries, "has_more": False, "first_id": None, "last_id": None}
    return web.Response(body=json.dumps(body).encode(), content_type="application/json")
