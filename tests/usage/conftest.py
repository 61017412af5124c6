"""What the tests of usage share: events, made short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Event

MakeEvent = Callable[..., Event]


@pytest.fixture
def event() -> MakeEvent:
    """Make an event; what is not given is an ordinary success."""

    def make(**fields: Any) -> Event:
        native = {
            "input_tokens": 100,
            "cache_read_input_tokens": 30,
            "cache_creation_input_tokens": 20,
            "output_tokens": 10,
        }
        plain: dict[str, Any] = {
            "sweep_id": "s",
            "cell_id": "c",
            "session": "work",
            "call_id": "call-1",
            "status": "success",
            "answered_model": "claude-sonnet-4-5",
            "provider": "anthropic",
            "wire": "anthropic-messages",
            "started_at": "2026-01-01T00:00:00Z",
            "completed_at": "2026-01-01T00:00:01Z",
            "ttft_ms": 5.0,
            "native_usage": native,
        }
        return Event(**plain | fields)

    return make
