"""Requests at a session's door, made byte by byte where a client would not, and what comes of them."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from typing import Any

from tests.gateway.conftest import LIVE, USER, Seen, Session

MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
COUNT = "/v1/messages/count_tokens"
PLAIN: dict[str, dict[str, Any]] = {
    MESSAGES: {"max_tokens": 9, "messages": [USER]},
    COUNT: {"messages": [USER]},
    RESPONSES: {"input": "hello"},
    CHAT: {"messages": [USER]},
}
FORGED = "a forged answer"


def exchange(session: Session, request: bytes, seconds: float = 20) -> bytes:
    """Send bytes as they are, and return all that comes until the door is silent for a moment after it spoke."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(seconds)
        client.connect(str(session.door.socket))
        with suppress(OSError):
            client.sendall(request)
        got = b""
        with suppress(OSError):
            while chunk := client.recv(1 << 16):
                got += chunk
                client.settimeout(0.4)
        return got


def head(session: Session, line: str, *headers: str, key: bool = True, last: bool = True) -> bytes:
    own = [f"authorization: Bearer {session.door.key}"] if key else []
    own += ["connection: close"] if last else []
    return "\r\n".join([line, "host: x", *own, *headers, "", ""]).encode()


def request_bytes(session: Session, body: bytes, *headers: str, path: str = CHAT) -> bytes:
    return head(session, f"POST {path} HTTP/1.1", f"content-length: {len(body)}", *headers) + body


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.[01] (\d{3})", answer)]


def authorization(seen: Seen) -> str:
    (value,) = [value for name, value in seen.headers.items() if name.lower() == "authorization"]
    return value


def ask(session: Session, path: str = CHAT, model: Any = LIVE, **body: Any) -> tuple[int, bytes]:
    status, _, answer = session.send("POST", path, {"model": model, **PLAIN[path], **body})
    return status, answer
