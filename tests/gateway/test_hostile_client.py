"""A client at the door that means harm: it harms its own session at most, and its session closes in time."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psutil
import pytest

from pytest_wfbench.gateway.http import CONNECTIONS, MAX_BODY
from pytest_wfbench.gateway.supervisor import RunningGateway
from tests.suite import until

from .conftest import USER, OpenSession, Session

pytestmark = pytest.mark.slow

FLOOD = 3000
CHUNK = b"10000\r\n" + b"x" * (1 << 16) + b"\r\n"
HUGE = 1 << 20
MEMORY = 300 << 20
PATIENCE = 5.0
NOISES = (b"\x00\xff\r\n" * 5000, b"GET / HTTP/9.9\r\n\r\n" * 500, b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n" * 5000)
Attack = Callable[[Session, ExitStack], None]


def connected(session: Session, held: ExitStack) -> socket.socket:
    """Return a connection to a door that is kept until the session was closed."""
    peer = held.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
    peer.settimeout(PATIENCE)
    peer.connect(str(session.door.socket))
    return peer


def head(session: Session, *more: str) -> bytes:
    lines = ("POST /v1/chat/completions HTTP/1.1", "host: x", f"authorization: Bearer {session.door.key}", *more)
    return "".join(f"{line}\r\n" for line in lines).encode()


def answer(peer: socket.socket) -> bytes:
    """Return what comes until the end; an abrupt end is one."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while data := peer.recv(1 << 16):
            got += data
            if b"\r\n\r\n" in got:
                break
    return got


def half_a_head(session: Session, held: ExitStack) -> None:
    for _ in range(50):
        connected(session, held).sendall(head(session)[:-9])


def half_a_body(session: Session, held: ExitStack) -> None:
    for _ in range(50):
        connected(session, held).sendall(head(session, "content-length: 1000") + b"\r\n{")


def idle_thousands(session: Session, held: ExitStack) -> None:
    peers = []
    for _ in range(FLOOD):
        with contextlib.suppress(BlockingIOError, ConnectionError):
            peers.append(connected(session, held))
    until(lambda: sum(map(_is_held, peers)) <= CONNECTIONS, PATIENCE, "an end of most of them")


def _is_held(peer: socket.socket) -> bool:
    peer.setblocking(False)
    try:
        return bool(peer.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def huge_header(session: Session, held: ExitStack) -> None:
    peer = connected(session, held)
    with contextlib.suppress(ConnectionError):
        peer.sendall(head(session) + b"x-long: " + b"y" * HUGE)
    assert b" 400 " in answer(peer)[:30] or not answer(peer)


def endless_body(session: Session, held: ExitStack) -> None:
    peer, sent = connected(session, held), 0
    peer.sendall(head(session, "transfer-encoding: chunked") + b"\r\n")
    deadline = time.monotonic() + PATIENCE
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < deadline:
            peer.sendall(CHUNK)
            sent += len(CHUNK)
    assert time.monotonic() < deadline
    assert sent > MAX_BODY


def pipelined_garbage(session: Session, held: ExitStack) -> None:
    for noise in NOISES:
        peer = connected(session, held)
        with contextlib.suppress(ConnectionError, TimeoutError):
            peer.settimeout(1.0)
            peer.sendall(noise)  # and reads no answer


def leaving(session: Session, held: ExitStack) -> None:
    body = json.dumps({"model": "replay/demo", "stream": True, "messages": [USER]}).encode()
    request = head(session, f"content-length: {len(body)}", "content-type: application/json") + b"\r\n" + body
    for _ in range(20):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as peer:
            peer.connect(str(session.door.socket))
            peer.sendall(request)


def sent_at_once(session: Session, held: ExitStack, body: bytes, times: int) -> list[bytes]:
    """Return the answers to a body that comes on so many connections at a time."""
    peers = [connected(session, held) for _ in range(times)]

    def sending(peer: socket.socket) -> bytes:
        peer.settimeout(60)
        with contextlib.suppress(ConnectionError):
            peer.sendall(head(session, f"content-length: {len(body)}") + b"\r\n" + body)
        return answer(peer)

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(sending, peers))


def body_with(more: bytes) -> bytes:
    return json.dumps({"model": "replay/demo", "messages": [USER]}).encode()[:-1] + b"," + more + b"}"


def many_values(session: Session, held: ExitStack) -> None:
    body = body_with(b'"x":[' + b"[]," * (4 << 20) + b"0]")
    answers = sent_at_once(session, held, body, 4)
    assert all(b" 413 " in one[:20] or not one for one in answers), answers


def text_is_not_values(session: Session, held: ExitStack) -> None:
    body = body_with(b'"x":"' + b'[1,2,\\"' * (1 << 18) + b'"')
    assert all(b" 200 " in one[:20] for one in sent_at_once(session, held, body, 2))


def another_encoding(session: Session, held: ExitStack) -> None:
    body = body_with(b'"x":["\xc4\xa2",' + b"[]," * (1 << 20) + b"0]").decode().encode("utf-16")
    assert all(b" 4" in one[:20] or not one for one in sent_at_once(session, held, body, 2))


def large_bodies(session: Session, held: ExitStack) -> None:
    answers = sent_at_once(session, held, body_with(b'"x":"' + b"y" * (40 << 20) + b'"'), 6)
    assert sum(b" 200 " in one[:20] for one in answers) <= 3


def endless_types(session: Session, held: ExitStack) -> None:
    kind = "_20260101" * 4000 + "x"
    nested: object = "y" * (1 << 20)
    for _ in range(90):
        nested = {"type": nested}
    for more in ({"tools": [{"type": kind}]}, {"tool_choice": {"type": kind}}, {"stop": nested}):
        began = time.monotonic()
        (got,) = sent_at_once(session, held, body_with(json.dumps(more).encode()[1:-1]), 1)
        assert re.match(rb"HTTP/1.1 [24]00 ", got)
        assert time.monotonic() - began < PATIENCE


def echoed(session: Session, held: ExitStack) -> None:
    """What LiteLLM has to say of a wrong request repeats it, several times over."""
    for wrong in (
        {"role": "q " * (1 << 20), "content": "x"},
        {"role": "user", "content": [{"type": "z " * (1 << 19)}]},
    ):
        began = time.monotonic()
        body = json.dumps({"model": "replay/demo", "messages": [wrong]}).encode()
        (got,) = sent_at_once(session, held, body, 1)
        assert re.match(rb"HTTP/1.1 [45]00 ", got)
        assert len(got) < 10_000
        assert time.monotonic() - began < 3 * PATIENCE


ATTACKS: tuple[Attack, ...] = (
    half_a_head, half_a_body, idle_thousands, huge_header, endless_body, pipelined_garbage, leaving, many_values,
    text_is_not_values, another_encoding, large_bodies, endless_types, echoed,
)  # fmt: skip


@pytest.fixture
def calm(gateway: RunningGateway, open_session: OpenSession) -> Iterator[Callable[[], float]]:
    """Another session, and the seconds that a request of it takes; the gateway stays within bounds."""
    process, session = psutil.Process(gateway.pid), open_session("claude", cell="calm")
    before = process.memory_info().rss

    def request() -> float:
        began = time.monotonic()
        assert session.chat()[0] == 200
        return time.monotonic() - began

    request()
    yield request
    assert process.memory_info().rss - before < MEMORY


class TestHostileClient:
    @pytest.mark.parametrize("attack", ATTACKS, ids=[attack.__name__ for attack in ATTACKS])
    def test_others_do_not_notice(
        self, open_session: OpenSession, calm: Callable[[], float], gateway: RunningGateway, attack: Attack
    ) -> None:
        """Others are served as ever while it lasts, descriptors stay bounded, and the session closes at once."""
        session = open_session("claude", cell="hostile")
        with ExitStack() as held:
            attack(session, held)
            assert min(calm() for _ in range(3)) < 1.0
            # Only root can look into a process that closed itself.
            with contextlib.suppress(psutil.AccessDenied):
                assert psutil.Process(gateway.pid).num_fds() < 2 * CONNECTIONS
            began = time.monotonic()
            used = session.close()
            assert time.monotonic() - began < PATIENCE
        assert used.open_calls == 0
        assert not session.door.socket.exists()
