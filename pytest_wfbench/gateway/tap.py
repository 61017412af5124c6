"""The far side of LiteLLM: sees the provider's own bytes, and meters them."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from pytest_wfbench.gateway.answers.base import compact
from pytest_wfbench.gateway.api import Event, Wire
from pytest_wfbench.gateway.calls import Call, Calls
from pytest_wfbench.gateway.http import MAX_BODY, Passage, TooLarge, error_response, read_body
from pytest_wfbench.gateway.meter import Meter, Redact
from pytest_wfbench.gateway.outward import TooDeep, provider_side
from pytest_wfbench.gateway.upstream import Cut, Upstream, UpstreamAnswer, UpstreamRequest

CALL_HEADER = "x-wfbench-call"
CALLBACK_PATH = "/wfbench/callback"
COUNT_PATH = "/v1/messages/count_tokens"
DRAIN_SECONDS = 60.0
FORWARDED = ("accept", "content-type", "anthropic-version", "anthropic-beta", "user-agent")
Recorder = Callable[[Event], None]
WIRES: Mapping[str, Wire] = {
    "/v1/messages": "anthropic-messages",
    "/v1/responses": "openai-responses",
    "/v1/chat/completions": "openai-chat",
}
Hear = Callable[[Call, int, str | None], None]


def _remember(call: Call, status: int, retry_after: str | None) -> None:
    call.heard = (status, retry_after)


@dataclass(frozen=True)
class Tap:
    """Answers LiteLLM. ``secret`` is what LiteLLM takes for the provider's key; ``redact`` cleans error messages.

    ``hear`` is told of each answer its status, and the provider's word on when to come again.
    """

    calls: Calls
    secret: str
    replay: Upstream
    forward: Upstream
    redact: Redact
    hear: Hear = _remember

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request of LiteLLM, or its callback."""
        if not self._authorised(request.headers):
            return error_response(403, "permission_error", "not from the gateway's own proxy")
        call = self.calls.find(request.headers.get(CALL_HEADER))
        if call is None:
            return error_response(403, "permission_error", "unknown call id")
        if request.path == CALLBACK_PATH:
            await call.report.read(request)
            call.session.callbacks += 1
            return web.Response(status=204)
        return await self._generate(request, call)

    async def _generate(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        wire = WIRES.get(request.path)
        if wire is None or request.method != "POST":
            return error_response(404, "not_found_error", f"no such route upstream: {request.path}")
        try:
            raw = await read_body(request, MAX_BODY)
            body = json.loads(raw)
        except (TooLarge, ValueError, RecursionError) as error:
            return error_response(400, "invalid_request_error", str(error))
        if not isinstance(body, dict) or body.get("model") != call.target.model:
            return error_response(403, "permission_error", "the proxy asks for a model that the session may not use")
        if refused := _refused(call, wire, body):
            return error_response(
                400, "invalid_request_error", f"{refused}: off here, whatever became of the request on its way"
            )
        headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
        sent = UpstreamRequest(call, wire, request.path, headers, body, raw)
        return await self._metered(request, sent, Meter(call, wire, call.start_attempt(), self.redact))

    async def _metered(self, request: web.BaseRequest, sent: UpstreamRequest, meter: Meter) -> web.StreamResponse:
        task = asyncio.current_task()
        session = sent.call.session
        if task is not None:
            session.tasks.add(task)
        try:
            upstream = self.replay if sent.call.target.script is not None else self.forward
            async with upstream.answer(sent) as answer:
                self.hear(sent.call, answer.status, answer.headers.get("retry-after"))
                return await self._pass_on(request, meter, answer, session.record)
        except Cut as error:
            session.record(meter.event(cut=True, error=str(error)))
            return error_response(502, "api_error", "the provider did not answer")
        except asyncio.CancelledError:
            # Still open when its session was closed: listed as such, without an event, and paid for all the same.
            session.charge(meter.event(cut=True).model_copy(update={"status": "cut"}))
            raise
        finally:
            session.tasks.discard(task)
            sent.call.end_attempt()

    async def _pass_on(
        self, request: web.BaseRequest, meter: Meter, answer: UpstreamAnswer, record: Recorder
    ) -> web.StreamResponse:
        meter.begin(answer.status, answer.streamed)
        kind = "text/event-stream" if answer.streamed else "application/json"
        response = web.StreamResponse(status=answer.status, headers={**answer.headers, "content-type": kind})
        passage = Passage(request, response)
        try:
            async with asyncio.timeout(None) as limit:
                await passage.open()
                async for chunk in answer.chunks:
                    meter.feed(chunk)
                    await passage.write(chunk)
                    if passage.gone and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + DRAIN_SECONDS)
        except (Cut, TimeoutError) as error:
            record(meter.event(cut=True, gone=passage.gone, error=str(error) or "the stream outlived its client"))
            passage.abort()
            return response
        # The record comes before the last byte: who has the whole answer can count on the event.
        record(meter.event(gone=passage.gone))
        await passage.close()
        return response

    async def count_tokens(
        self, request: web.BaseRequest, call: Call, headers: Mapping[str, str], body: Mapping[str, object]
    ) -> web.StreamResponse:
        """Answer a client that only counts: LiteLLM has no hook for it, so this comes from the door itself."""
        sent = UpstreamRequest(call, "anthropic-messages", COUNT_PATH, headers, body, compact(body))
        meter = Meter(call, "anthropic-messages", call.start_attempt(), self.redact, kind="count")
        return await self._metered(request, sent, meter)

    def _authorised(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.secret.encode())


def _refused(call: Call, wire: Wire, body: Mapping[str, object]) -> str | None:
    """Name what makes the provider act without permission: LiteLLM may read a request otherwise than the door did."""
    try:
        found = set(provider_side(wire, body)) - set(call.session.request.provider_tools)
    except TooDeep:
        return "nesting"
    return ", ".join(sorted(found)) or None
