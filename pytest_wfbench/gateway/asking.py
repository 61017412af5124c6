"""One request of the harness's own to a model, through a door of the gateway."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from pytest_wfbench.gateway.api import Door
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

PATHS: Mapping[str, str] = {ANTHROPIC: "/v1/messages", CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses"}
LARGEST = 8 << 20
LONGEST_PAUSE = 20.0


class UnixHTTPConnection(HTTPConnection):
    """HTTP to a unix socket, with nothing but the standard library."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("gateway", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Answer(NamedTuple):
    """What came back: at most ``LARGEST`` bytes. ``pause`` is what it said to wait, in seconds, 0 if nothing."""

    status: int
    pause: float
    data: bytes


def ask(door: Door, wire: str, body: Mapping[str, Any], seconds: float) -> Answer:
    """Make a request in a wire format and wait so long for each part of its answer.

    Raises:
        OSError, HTTPException: when there is no answer.
    """
    headers = {"authorization": f"Bearer {door.key}", "content-type": "application/json"}
    with closing(UnixHTTPConnection(door.socket, seconds)) as connection:
        connection.request("POST", PATHS[wire], json.dumps(body), headers)
        answer = connection.getresponse()
        return Answer(answer.status, _pause(answer.getheader("retry-after")), answer.read(LARGEST))


def _pause(text: str | None) -> float:
    return min(float(text), LONGEST_PAUSE) if text and text.isdecimal() else 0.0
