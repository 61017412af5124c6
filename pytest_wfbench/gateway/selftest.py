"""One request over the whole road, against a built-in script, before a cell starts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from pytest_wfbench.gateway.api import Door, Event, GatewayLost, Labels, OpenRequest
from pytest_wfbench.gateway.asking import ask
from pytest_wfbench.gateway.cassette import Cassette, Script, Turn
from pytest_wfbench.gateway.client import Gateway
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.wires import ANTHROPIC, CHAT

SELF_TEST_MODEL = "wfbench/self-test"
TEXT = "the road is open"
USAGE = Reported(ordinary_input=11, cache_read_input=7, cache_write_input=5, output=3)
SELF_TEST_SCRIPT = Script(
    Path("self-test"),
    Cassette(model="self-test", provider="anthropic", turns=(Turn(text=TEXT, usage=USAGE),)),
)
SECONDS = 20.0
CALLBACK_SECONDS = 10.0
POLL = 0.02


def self_test(gateway: Gateway) -> Event:
    """Send one request through a door of its own and return its event.

    Raises:
        GatewayLost: when any part of the road is broken: no answer, no event, an event that is not whole, or no
            report from LiteLLM's callback.
    """
    labels = Labels(task="self-test", arm="none", session="preflight", run=1, agent="none")
    door = gateway.open(OpenRequest(cell_id="self-test", labels=labels, models=(SELF_TEST_MODEL,), seconds=60))
    try:
        _request(door)
        counted = _await_callback(gateway, door)
    finally:
        events = gateway.close(door).events
    _check(counted)
    return _whole(events)


def _request(door: Door) -> None:
    body = {"model": SELF_TEST_MODEL, "messages": [{"role": "user", "content": "ping"}]}
    try:
        answer = ask(door, CHAT, body, SECONDS)
    except (OSError, HTTPException) as error:
        raise GatewayLost(f"self-test: the door does not answer: {error}") from error
    text = answer.data.decode(errors="replace")
    if answer.status != 200 or TEXT not in text:
        raise GatewayLost(f"self-test: answered {answer.status}: {text[:500]}")


def _await_callback(gateway: Gateway, door: Door) -> Mapping[str, Any]:
    """Return what LiteLLM says that it counted."""
    deadline = time.monotonic() + CALLBACK_SECONDS
    while time.monotonic() < deadline:
        seen = gateway.totals(door)
        if seen.callbacks:
            return seen.counted or {}
        time.sleep(POLL)
    raise GatewayLost("self-test: LiteLLM's callback did not report the request")


def _check(counted: Mapping[str, Any]) -> None:
    """LiteLLM and the wire must have counted the same: where the wire shows nothing, LiteLLM's word is all there is."""
    told = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if told != (USAGE.whole_input, USAGE.output):
        raise GatewayLost(f"self-test: LiteLLM counted {told} tokens, the wire {USAGE.whole_input, USAGE.output}")


def _whole(events: tuple[Event, ...]) -> Event:
    expected = {
        "input_tokens": USAGE.ordinary_input,
        "cache_creation_input_tokens": USAGE.cache_write_input,
        "cache_read_input_tokens": USAGE.cache_read_input,
        "output_tokens": USAGE.output,
    }
    if len(events) != 1:
        raise GatewayLost(f"self-test: {len(events)} events were recorded instead of 1")
    event = events[0]
    if (event.status, event.wire, event.native_usage) != ("success", ANTHROPIC, expected):
        raise GatewayLost(f"self-test: the event is not whole: {event.model_dump_json()}")
    return event
