"""The control socket of a gateway that starts."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.gateway.desk import Desk


async def _open(path: Path) -> None:
    async def answer(question: object) -> Any:
        raise AssertionError(question)

    server = await Desk("token", answer).open(path)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    server.close()


def test_its_name_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds the socket can connect to it: it has its name when it listens, and not before."""
    path, named = tmp_path / "control", []
    listen = socket.socket.listen

    def watched(self: socket.socket, *backlog: int) -> None:
        named.append(path.exists())
        listen(self, *backlog)

    monkeypatch.setattr(socket.socket, "listen", watched)
    asyncio.run(_open(path))
    assert named == [False]
    assert [entry.name for entry in tmp_path.iterdir()] == ["control"]
