"""What answers behind the tap: a script, or a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_wfbench.gateway.calls import Call


class Cut(Exception):
    """The answer broke off."""


@dataclass(frozen=True)
class UpstreamRequest:
    """A request as LiteLLM sent it. ``headers`` are the protocol's, keys and call id removed; ``path`` as received."""

    call: Call
    wire: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: bytes

    @property
    def streamed(self) -> bool:
        """Whether the answer is to be a stream."""
        return self.body.get("stream") is True


@dataclass(frozen=True)
class UpstreamAnswer:
    """An answer as it comes. Iterating ``chunks`` raises Cut where it breaks off. ``streamed``: server-sent events."""

    status: int
    chunks: AsyncIterator[bytes]
    streamed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Upstream(Protocol):
    """Answers requests."""

    def answer(self, request: UpstreamRequest) -> AbstractAsyncContextManager[UpstreamAnswer]:
        """Answer a request. Raises Cut when there is no answer at all."""
        ...
