"""Loaded by LiteLLM itself, by file path and as a top-level module: it imports nothing of ours.

It does three things: every request of LiteLLM goes to the tap's socket and nowhere else, the door's call id travels
with it as a header, and LiteLLM's own report of a finished call is told to the tap.
"""

from __future__ import annotations

import os
from typing import Any

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, UnixConnector
from litellm import model_cost
from litellm.integrations.custom_logger import CustomLogger
from litellm.llms.anthropic.pass_through.messages.transformation import AnthropicMessagesConfig
from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
from litellm.llms.openai.responses.transformation import OpenAIResponsesAPIConfig

CALL_HEADER = "x-wfbench-call"
TAP = os.environ["WFBENCH_TAP"]
SECRET = os.environ["WFBENCH_TAP_SECRET"]
CALLBACK_SECONDS = 10


def _session() -> ClientSession:
    return ClientSession(connector=UnixConnector(path=TAP, limit=0), cookie_jar=DummyCookieJar())


def _transport(*_: Any, **__: Any) -> LiteLLMAiohttpTransport:
    return LiteLLMAiohttpTransport(client=_session)


# The one factory that the clients of all three wire formats take their transport from.
AsyncHTTPHandler.create_async_transport = staticmethod(_transport)  # type: ignore[method-assign]


def _never(*_: Any, **__: Any) -> bool:
    return False


# A model that its table does not know it would ask for a whole answer, and let the client wait for what is a stream.
OpenAIResponsesAPIConfig.should_fake_stream = _never  # type: ignore[method-assign]

_fit_effort = AnthropicMessagesConfig._translate_adaptive_effort_for_non_adaptive_model


def _fit_known(model: str, *rest: Any, **more: Any) -> None:
    if model in model_cost:
        _fit_effort(model, *rest, **more)


# Of a model that its table does not know, as a team's own name of one, it would drop effort and thinking silently.
AnthropicMessagesConfig._translate_adaptive_effort_for_non_adaptive_model = staticmethod(_fit_known)  # type: ignore[method-assign]


def _count(value: Any) -> int | None:
    return value if type(value) is int else None


def _report(counted: Any) -> dict[str, Any]:
    """Return the answering model, and its tokens in the format of Chat Completions; what is unknown is left out."""
    usage = (counted.get("metadata") or {}).get("usage_object") or {}
    asked, said = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    wrote = _count(usage.get("cache_creation_input_tokens"))
    tokens = {
        "prompt_tokens": _count(usage.get("prompt_tokens")),
        "completion_tokens": _count(usage.get("completion_tokens")),
        "prompt_tokens_details": {
            "cached_tokens": _count(asked.get("cached_tokens")),
            "cache_write_tokens": _count(asked.get("cache_creation_tokens")) if wrote is None else wrote,
        },
        "completion_tokens_details": {"reasoning_tokens": _count(said.get("reasoning_tokens"))},
    }
    return {"usage": tokens if usage else None, "model": str(counted.get("model") or "")}


class Hooks(CustomLogger):
    """LiteLLM calls these by keyword: the names of the parameters are part of the interface."""

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: Any, call_type: Any) -> Any:
        """Hand the door's call id on to the provider's side."""
        call_id = data["proxy_server_request"]["headers"].get(CALL_HEADER, "")
        data["extra_headers"] = {**(data.get("extra_headers") or {}), CALL_HEADER: call_id}
        return data

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Tell the tap what LiteLLM counted of a call. ``kwargs`` hold secrets: only what is named here goes on."""
        headers = {CALL_HEADER: str(kwargs.get("litellm_call_id")), "x-api-key": SECRET}
        async with _session() as session:
            timeout = ClientTimeout(total=CALLBACK_SECONDS)
            told = _report(kwargs.get("standard_logging_object") or {})
            async with session.post("http://tap/wfbench/callback", headers=headers, timeout=timeout, json=told):
                pass


hooks = Hooks()
