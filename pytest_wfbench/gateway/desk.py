"""Answers the control socket: one question a connection, and some that are only answered when the gateway is lost."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_wfbench.gateway.api import GatewayLost, GatewayRefused
from pytest_wfbench.gateway.control import ASKING, MAX_LINE, Reply, Watch


@dataclass(frozen=True)
class Desk:
    """Takes questions of who knows ``token``. ``answer`` raises GatewayRefused or GatewayLost."""

    token: str
    answer: Callable[[object], Awaitable[Any]]

    async def open(self, path: Path) -> asyncio.Server:
        """Listen on a new unix socket, which has its name once it can be connected to: others wait for that."""
        early = path.with_name(f"{path.name}~")
        server = await asyncio.start_unix_server(self._serve, path=str(early), limit=MAX_LINE)
        early.rename(path)
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = await self._reply(reader)
        try:
            if reply is not None:
                writer.write(reply.model_dump_json().encode() + b"\n")
                await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            return

    async def _reply(self, reader: asyncio.StreamReader) -> Reply | None:
        try:
            asking = ASKING.validate_json(await reader.readline())
            if not hmac.compare_digest(asking.token, self.token):
                raise GatewayRefused("wrong token")
            if isinstance(asking.question, Watch):
                return await self._unless_it_leaves(reader, asking.question)
            return Reply(value=await self.answer(asking.question))
        except GatewayLost as error:
            return Reply(lost=str(error))
        except GatewayRefused as error:
            return Reply(refused=str(error))
        except (ValidationError, ValueError) as error:
            return Reply(refused=f"not a question: {error}")

    async def _unless_it_leaves(self, reader: asyncio.StreamReader, question: Watch) -> Reply | None:
        """Answer a watcher; none once it has gone, so that nothing of it stays."""
        answering = asyncio.ensure_future(self.answer(question))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            done, _ = await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            return Reply(value=await answering) if answering in done else None
        finally:
            for task in (answering, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError, GatewayLost, OSError):
                    await task
