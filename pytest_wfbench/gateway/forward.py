"""Answers from a real provider, byte for byte."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar

from pytest_wfbench.gateway.control import Provider
from pytest_wfbench.gateway.upstream import Cut, UpstreamAnswer, UpstreamRequest

PASSED_BACK = ("retry-after", "request-id", "x-request-id")
CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 600.0


def _anthropic_key(key: str) -> dict[str, str]:
    return {"x-api-key": key}


def _bearer(key: str) -> dict[str, str]:
    """A provider that takes no key gets none."""
    return {"authorization": f"Bearer {key}"} if key else {}


KEY_HEADERS: Mapping[str, Callable[[str], dict[str, str]]] = {"anthropic": _anthropic_key}


class Forward:
    """The upstream that sends requests on, with the provider's own key. Close it with the loop still running."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers
        # Nothing is taken from the environment but the proxies that lead out; redirects could carry the key elsewhere.
        self._client = ClientSession(
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
            cookie_jar=DummyCookieJar(),
            trust_env=True,
            auto_decompress=True,
        )

    @asynccontextmanager
    async def answer(self, request: UpstreamRequest) -> AsyncIterator[UpstreamAnswer]:
        """Send a request on. Raises Cut when the provider cannot be reached."""
        provider = self._providers[request.call.target.provider]
        headers = {**request.headers, **KEY_HEADERS.get(provider.name, _bearer)(provider.key)}
        url = provider.base_url.rstrip("/") + request.path
        try:
            response = await self._client.post(url, data=request.raw, headers=headers, allow_redirects=False)
        except (ClientError, TimeoutError) as error:
            raise Cut(f"{provider.name} cannot be reached: {error}") from error
        async with response:
            kept = {name: response.headers[name] for name in PASSED_BACK if name in response.headers}
            streamed = response.content_type == "text/event-stream"
            yield UpstreamAnswer(response.status, _chunks(response), streamed, kept)

    async def close(self) -> None:
        """Drop the connections."""
        await self._client.close()


async def _chunks(response: ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (ClientError, TimeoutError) as error:
        raise Cut(f"the provider's answer broke off: {error}") from error
