"""Requests to a forge's REST API: paged, repeated where the network or the forge stumbles, one origin only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx

from pytest_wfbench.forge.api import ForgeError, NotAllowed, TooLong

TRIES = 4
TIMEOUT = 30.0
LONGEST_WAIT = 60.0
PAGES = 200
_PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Rest:
    """A REST API: its root without a slash at the end, and the headers of every request, the token's among them.

    ``pause`` waits a number of seconds.
    """

    root: str
    headers: Mapping[str, str] = field(repr=False)
    pause: Callable[[float], None] = time.sleep

    @cached_property
    def _client(self) -> httpx.Client:
        return httpx.Client(headers=dict(self.headers), timeout=TIMEOUT)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the entries of a list, page after page as the ``Link`` header leads."""
        url: str | None = self.root + path
        for _ in range(PAGES):
            if url is None:
                return
            answer = self.send("GET", url)
            entries = self._json(answer)
            if not isinstance(entries, list):
                raise ForgeError(f"{self.root}{path} answered no list: is this the API's root?")
            yield from entries
            url = self._next(answer)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON that a request is answered with; none where there is nothing."""
        answer = self.send(method, self.root + path, body)
        return self._json(answer) if answer.content else None

    def send(self, method: str, url: str, body: Any = None) -> httpx.Response:
        """Send a request until it is answered for good. Raises ForgeError, NotAllowed, TooLong."""
        said = "no answer"
        for number in range(TRIES):
            if number:
                self.pause(min(2.0**number, LONGEST_WAIT))
            try:
                answer = self._client.request(method, url, json=body)
            except httpx.TransportError as error:
                said = str(error) or type(error).__name__
                continue
            if answer.status_code not in _PASSING and not _is_throttled(answer):
                return _expected(answer)
            said = f"HTTP {answer.status_code}"
            self.pause(_asked_wait(answer))
        raise ForgeError(f"{_shown(url)} does not answer ({said}): try again later")

    def _next(self, answer: httpx.Response) -> str | None:
        url = answer.links.get("next", {}).get("url")
        if url is not None and httpx.URL(url).copy_with(raw_path=b"/") != httpx.URL(self.root).copy_with(raw_path=b"/"):
            raise ForgeError(f"{self.root} leads to another host for its next page, which is not followed")
        return url

    def _json(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError:
            raise ForgeError(f"{self.root} answered no JSON: is this the API's root?") from None


def _expected(answer: httpx.Response) -> httpx.Response:
    status = answer.status_code
    if status < 300 or (status == 404 and answer.request.method == "DELETE"):
        return answer
    said = f"{_shown(str(answer.request.url))} answered HTTP {status}"
    if status in (403, 404) and answer.request.method != "GET":
        raise NotAllowed(f"{said}: the token may not write there")
    if status in (413, 422) or (status == 400 and "too long" in answer.text):
        raise TooLong(f"{said}: {answer.text[:200]}")
    remedies = {401: "the token is not valid, or has expired", 403: "the token may not read there",
                404: "no such repository or pull request, or the token may not see it"}  # fmt: skip
    raise ForgeError(f"{said}: {remedies.get(status, answer.text[:200])}")


def _is_throttled(answer: httpx.Response) -> bool:
    """GitHub says 403 where it means 429."""
    return answer.status_code == 403 and (
        "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    )


def _asked_wait(answer: httpx.Response) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0


def _shown(url: str) -> str:
    return str(httpx.URL(url).copy_with(query=None, userinfo=b""))
