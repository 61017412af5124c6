"""The control side of a running gateway, for the controller and its workers. Light: no HTTP library, no LiteLLM."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.gateway.api import (
    Door,
    GatewayLost,
    GatewayRefused,
    Message,
    OpenRequest,
    Route,
    SessionUsage,
    Terms,
)
from pytest_wfbench.gateway.control import (
    Account,
    Asking,
    Begin,
    Books,
    Close,
    Health,
    Open,
    Question,
    Reply,
    Seen,
    Status,
    Stop,
    Totals,
    Watch,
)

# A close drains for 10 s at most; anything slower than this is dead.
ANSWER_SECONDS = 30.0
CHUNK = 1 << 16
FREE = Terms()


class GatewayAddress(Message):
    """How a worker reaches the gateway: plain JSON, to be handed over with the worker's input."""

    socket: Path
    token: str = Field(repr=False)


class Gateway:
    """Asks a running gateway. Safe to use from several threads: each question has its own connection."""

    def __init__(self, address: GatewayAddress) -> None:
        self.address = address

    def begin(
        self,
        sweep_id: str,
        usage_path: Path,
        routes: tuple[Route, ...],
        record: Path | None = None,
        terms: Terms = FREE,
    ) -> None:
        """Say where events go and where models lead, once, before the first door. Works while LiteLLM still boots.

        What the file already holds of this sweep is counted as spent. With ``record`` each session becomes a cassette
        in that directory.

        Raises:
            GatewayRefused: for a faulty cassette, a model without a provider, or a file that cannot be written.
            GatewayLost: when the gateway does not answer.
        """
        asked = Begin(sweep_id=sweep_id, usage_path=usage_path, routes=routes, record=record, terms=terms)
        self._ask(asked)

    def open(self, request: OpenRequest) -> Door:
        """Open a door. Raises GatewayLost; GatewayRefused, for example when no cassette fits."""
        return Door.model_validate(self._ask(Open(request=request)))

    def close(self, door: Door) -> SessionUsage:
        """Refuse new calls, wait at most 10 s for the open ones, remove the socket. Raises GatewayLost."""
        return SessionUsage.model_validate(self._ask(Close(door=door.socket)))

    def totals(self, door: Door) -> Seen:
        """Count what passed a door so far. Raises GatewayLost."""
        return Seen.model_validate(self._ask(Totals(door=door.socket)))

    def account(self) -> Books:
        """Ask what was spent and waited for. Raises GatewayLost."""
        return Books.model_validate(self._ask(Account()))

    def status(self) -> Health:
        """Ask how LiteLLM does. Raises GatewayLost."""
        return Health.model_validate(self._ask(Status()))

    def watch(self) -> Watching:
        """Keep an eye on the gateway, by a connection that it holds while it lives. Raises GatewayLost."""
        return Watching(self._connect(Watch()))

    def shut_down(self, replaced: bool = False) -> tuple[OpenCall, ...]:
        """End the gateway; returns the calls that never ended. Raises GatewayLost.

        ``replaced`` leaves its directory to another one that takes its place.
        """
        return tuple(OpenCall.model_validate(call) for call in self._ask(Stop(replaced=replaced)))

    def _ask(self, question: Question) -> Any:
        try:
            with closing(self._connect(question)) as connection:
                answer = b"".join(_received(connection))
        except OSError as error:
            raise GatewayLost(f"the gateway does not answer: {error}") from error
        return _value(answer)

    def _connect(self, question: Question) -> socket.socket:
        line = Asking(token=self.address.token, question=question).model_dump_json() + "\n"
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(str(self.address.socket))
            connection.sendall(line.encode())
        except OSError as error:
            connection.close()
            raise GatewayLost(f"the gateway does not answer: {error}") from error
        return connection


class Watching:
    """A question that is answered when the gateway is lost, on a connection that ends with it. Close it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._cause: str | None = None

    def is_set(self) -> bool:
        """Whether the gateway was lost. Does not wait."""
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Wait for its loss, at most so long, and say whether it came."""
        return self._cause is not None or bool(self._poll.poll(seconds * 1000))

    def cause(self) -> str | None:
        """Why it was lost, or none while it lives."""
        if self._cause is None and self.is_set():
            self._cause = _last_words(self._connection)
        return self._cause

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _last_words(connection: socket.socket) -> str:
    try:
        _value(b"".join(_received(connection)))
    except (GatewayLost, GatewayRefused) as error:
        return str(error)
    except OSError as error:
        return f"the gateway does not answer: {error}"
    return "the gateway has ended"


def _received(connection: socket.socket) -> Iterator[bytes]:
    while chunk := connection.recv(CHUNK):
        yield chunk


def _value(answer: bytes) -> Any:
    if not answer.endswith(b"\n"):
        raise GatewayLost("the gateway's process has ended")
    reply = Reply.model_validate_json(answer)
    if reply.lost is not None:
        raise GatewayLost(reply.lost)
    if reply.refused is not None:
        raise GatewayRefused(reply.refused)
    return reply.value
