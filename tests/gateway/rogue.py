"""A provider that misbehaves: raw sockets on this machine, and what each word in a request makes them do."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from pytest_wfbench.gateway.answers.base import Answer, Asked
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.wires import ANTHROPIC, CHAT

USAGE = Reported(ordinary_input=9, cache_read_input=4, cache_write_input=2, output=6)
TEXT = "Answered after all."
DRIP_SECONDS = 0.1
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
Act = Callable[[socket.socket, bytes, bool], None]


def answer_of(wire: str, streamed: bool) -> bytes:
    """Return a good answer's body."""
    form, answer = FORMS[wire], Answer("1", "rogue-2026", 1, TEXT, (), USAGE, "end_turn")
    return b"".join(form.stream(answer, Asked())) if streamed else json.dumps(form.whole(answer, Asked())).encode()


def _head(body: bytes, streamed: bool, length: int | None = None) -> bytes:
    return STREAM if streamed else WHOLE + b"content-length: %d\r\n\r\n" % (len(body) if length is None else length)


def _reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def _good(peer: socket.socket, body: bytes, streamed: bool) -> None:
    peer.sendall(_head(body, streamed) + body)


def _reset_at_once(peer: socket.socket, body: bytes, streamed: bool) -> None:
    _reset(peer)


def _reset_midway(peer: socket.socket, body: bytes, streamed: bool) -> None:
    peer.sendall(_head(body, streamed) + body[: len(body) // 2])
    time.sleep(0.2)
    _reset(peer)


def _too_short(peer: socket.socket, body: bytes, streamed: bool) -> None:
    """Half an answer, an orderly end."""
    peer.sendall(_head(body, streamed) + body[: len(body) // 2])


def _half_closed(peer: socket.socket, body: bytes, streamed: bool) -> None:
    """An end of the answer's bytes before any, the connection left open on the other way."""
    peer.sendall(_head(body, streamed))
    peer.shutdown(socket.SHUT_WR)
    time.sleep(1.0)


def _no_http(peer: socket.socket, body: bytes, streamed: bool) -> None:
    peer.sendall(b"220 mail.example ESMTP\r\n")


def _huge_headers(peer: socket.socket, body: bytes, streamed: bool) -> None:
    with contextlib.suppress(OSError):
        peer.sendall(b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %s\r\n" % (n, b"y" * 4000) for n in range(2000)))


def _redirect(peer: socket.socket, body: bytes, streamed: bool) -> None:
    peer.sendall(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/elsewhere\r\ncontent-length: 0\r\n\r\n")


def _garbage(peer: socket.socket, body: bytes, streamed: bool) -> None:
    events = (b'{"choices": 5}', b'{"choices": [7], "usage": []}', b"[]", b"{", b"\xff\xfe\x00", b'{"type": {}}')
    noise = b"".join(b"data: %s\n\n" % event for event in events) + b"data:data:\n\rnoise\n\n"
    peer.sendall(_head(noise, streamed) + noise)


def _hang(peer: socket.socket, body: bytes, streamed: bool) -> None:
    _until_it_leaves(peer)


def _drip(peer: socket.socket, body: bytes, streamed: bool) -> None:
    """A byte at a time, never to the end."""
    peer.sendall(_head(body, streamed) + (body[:-8] if streamed else b""))
    with contextlib.suppress(OSError):
        while True:
            peer.sendall(b": \n" if streamed else b" ")
            time.sleep(DRIP_SECONDS)


def _until_it_leaves(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while peer.recv(1 << 16):
            pass


ACTS: Mapping[str, Act] = {
    "reset-at-once": _reset_at_once, "reset-midway": _reset_midway, "too-short": _too_short,
    "half-closed": _half_closed, "no-http": _no_http, "huge-headers": _huge_headers, "redirect": _redirect,
    "garbage": _garbage, "hang": _hang, "drip": _drip,
}  # fmt: skip


class Rogue:
    """Listens; a request in which ``FAULT <name>.`` stands gets that fault, any other a good answer."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError, ValueError, LookupError):
            path, body = _request(peer)
            wire = ANTHROPIC if path.endswith("/messages") else CHAT
            text, streamed = body.decode(), bool(json.loads(body).get("stream"))
            act = next((act for name, act in ACTS.items() if f"FAULT {name}." in text), _good)
            act(peer, answer_of(wire, streamed), streamed)


def _request(peer: socket.socket) -> tuple[str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += peer.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    while len(body) < int(headers["content-length"]):
        body += peer.recv(1 << 16)
    return lines[0].split()[1], body


@contextlib.contextmanager
def rogue_provider() -> Iterator[Rogue]:
    """Give a rogue that ends with the block."""
    rogue = Rogue()
    try:
        yield rogue
    finally:
        rogue.close()
