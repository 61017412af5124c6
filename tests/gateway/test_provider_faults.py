"""What a provider's faults become on the whole road: an answer the client can read, and an event that is right."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest

from pytest_wfbench.gateway.asking import UnixHTTPConnection
from pytest_wfbench.usage.cell import cell_usage

from .conftest import ROGUE, OpenSession, Session

pytestmark = pytest.mark.slow

# Before any output a failure is free; after it nobody knows what it cost.
FREE, UNKNOWN = False, True
OUTCOMES = {
    "reset-at-once": ("failure", "connection", FREE),
    "no-http": ("failure", "connection", FREE),
    "huge-headers": ("failure", "connection", FREE),
    "redirect": ("failure", "http-302", FREE),
    "reset-midway": ("cut", "cut", UNKNOWN),
    "too-short": ("cut", "cut", UNKNOWN),
    "half-closed": ("cut", "cut", UNKNOWN),
    "garbage": ("cut", "cut", UNKNOWN),
}


def ask(session: Session, fault: str, stream: bool) -> tuple[int | None, bytes]:
    body: dict[str, Any] = {"model": ROGUE, "max_tokens": 9, "stream": stream}
    body["messages"] = [{"role": "user", "content": f"FAULT {fault}."}]
    try:
        status, _, answer = session.send("POST", "/v1/messages", body)
    except (OSError, HTTPException):
        return None, b""
    return status, answer


class TestFaults:
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_each_ends_and_is_recorded(self, open_session: OpenSession, stream: bool) -> None:
        """No fault hangs, none looks like a whole answer, each leaves one event, and the next request is served."""
        found = {}
        for fault in OUTCOMES:
            session = open_session("rogue", models=(ROGUE,))
            began = time.monotonic()
            status, answer = ask(session, fault, stream)
            assert time.monotonic() - began < 10, fault
            assert status is None or status >= 400 or (stream and b"message_stop" not in answer), (fault, answer)
            assert ask(session, "none", stream)[0] == 200
            used = session.close()
            first, last = used.events
            assert (used.open_calls, last.status) == (0, "success")
            assert cell_usage([last]).usage.output == 6
            found[fault] = (first.status, first.error_class, cell_usage([first], 0).incomplete)
            assert first.native_usage is None or "output_tokens" not in first.native_usage
        assert found == OUTCOMES

    def test_streams_that_never_end(self, open_session: OpenSession) -> None:
        """What has come of a stream is passed on at once; on close the call is open, and the provider owes the rest."""
        drip, hang = (open_session("rogue", models=(ROGUE,)) for _ in range(2))
        with ThreadPoolExecutor(4) as pool:
            dripped, hung = threading.Event(), threading.Event()
            readings = [pool.submit(_read, drip, "drip", dripped), pool.submit(_read, hang, "hang", hung)]
            assert dripped.wait(5)
            assert not hung.is_set()
            began = time.monotonic()
            usages = list(pool.map(Session.close, (drip, hang)))
            assert time.monotonic() - began < 14
            for reading in readings:
                reading.result(5)
        for used in usages:
            assert (used.waiting, used.open_calls) == (True, 1)
            assert cell_usage(used.events, used.open_calls).incomplete


def _read(session: Session, fault: str, first: threading.Event) -> None:
    """Send a streamed request and tell when the answer's first bytes are here."""
    connection = UnixHTTPConnection(session.door.socket, 60)
    headers = {"authorization": f"Bearer {session.door.key}", "content-type": "application/json"}
    body = (
        f'{{"model": "{ROGUE}", "max_tokens": 9, "stream": true, '
        f'"messages": [{{"role": "user", "content": "FAULT {fault}."}}]}}'
    )
    with suppress(OSError, HTTPException):
        connection.request("POST", "/v1/messages", body, headers)
        answer = connection.getresponse()
        if b"message_start" in answer.read1():
            first.set()
        while answer.read1():
            pass
    connection.close()
