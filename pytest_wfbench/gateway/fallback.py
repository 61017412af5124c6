"""What LiteLLM says that it counted: checked against the wire, and all there is where the wire showed nothing."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pytest_wfbench.gateway.api import Event
from pytest_wfbench.gateway.http import TooLarge, read_body

if TYPE_CHECKING:
    from pytest_wfbench.gateway.meter import Meter

REPORT_LIMIT = 64 << 10
# LiteLLM reports when it has answered, a moment later.
REPORT_SECONDS = 5.0


@dataclass
class Report:
    """LiteLLM's report of a call, once it came: ``usage`` in the format of Chat Completions, none if it has none."""

    usage: dict[str, Any] | None = None
    model: str | None = None
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, request: web.BaseRequest) -> None:
        """Take it from the callback's request; one that cannot be read says that a call ended, and no more."""
        try:
            told = json.loads(await read_body(request, REPORT_LIMIT) or b"{}")
        except (TooLarge, ValueError, RecursionError):
            told = {}
        usage, model = (told.get("usage"), told.get("model")) if isinstance(told, dict) else (None, None)
        self.usage = usage if isinstance(usage, dict) and usage else None
        self.model = model if isinstance(model, str) else None
        self.came.set()


async def unseen(report: Report, meter: Meter) -> Event:
    """Return the event of an answer that LiteLLM gave without the tap, in LiteLLM's numbers, and marked as such.

    Without a report its tokens are unknown.
    """
    with suppress(TimeoutError):
        await asyncio.wait_for(report.came.wait(), REPORT_SECONDS)
    event = meter.event()
    return event.model_copy(
        update={
            "status": "success",
            "error_class": None,
            "usage_source": "litellm",
            "native_usage": report.usage,
            "answered_model": report.model,
        }
    )
