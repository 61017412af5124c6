"""What the gateway costs: requests a second through the tap alone and over the whole road, and the control calls.

Run it with ``python benchmarks/gateway.py``; it prints one JSON object. Client and gateway share the machine.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pytest_wfbench.evidence.event import Claims
from pytest_wfbench.gateway.api import Door, Labels, OpenRequest, Route
from pytest_wfbench.gateway.calls import Calls, Session, Target
from pytest_wfbench.gateway.cassette import load_cassettes
from pytest_wfbench.gateway.http import listen, unix_client
from pytest_wfbench.gateway.keys import Claim
from pytest_wfbench.gateway.replay import Replay
from pytest_wfbench.gateway.selftest import UnixHTTPConnection
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.gateway.tap import Tap

SCRIPT = """
model: scripted
provider: anthropic
turns:
  - text: A sentence of an answer, long enough to be sent in several pieces of a stream.
    tools: [{name: bash, input: {command: ls}}]
    usage: {ordinary_input: 2000, cache_read_input: 7000, cache_write_input: 1000, output: 50}
"""
MODEL = "replay/bench"
LABELS = Labels(task="t", arm="a", session="work", run=1, agent="none")
REQUEST = OpenRequest(cell_id="cell", labels=LABELS, models=(MODEL,), seconds=3600)
MESSAGES = [{"role": "user", "content": "hello"}]
CLIENTS = 8
TAP_REQUESTS = 2000
ROAD_REQUESTS = 400
CONTROL_CALLS = 100


async def tap_rate(directory: Path) -> float:
    """Return streamed requests a second that a tap on a real socket answers and meters."""
    script = load_cassettes(directory).find(LABELS)
    target = Target("anthropic", "scripted", script)
    session = Session(REQUEST, Claim("cell", "work", "d", (), 0), "s", {MODEL: target}, None)
    calls, replay = Calls(), Replay()
    call = calls.open(session, target, MODEL, Claims(), "main")
    listener = await listen(directory / "tap", Tap(calls, "secret", replay, replay, str).handle)
    body = json.dumps({"model": "scripted", "stream": True, "messages": MESSAGES}).encode()
    headers = {"x-api-key": "secret", "x-wfbench-call": call.id}

    async def work(client: Any) -> None:
        for _ in range(TAP_REQUESTS // CLIENTS):
            async with client.post("http://tap/v1/messages", data=body, headers=headers) as answer:
                await answer.read()

    async with unix_client(directory / "tap") as client:
        started = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(CLIENTS)))
        seconds = time.perf_counter() - started
    await listener.close(1)
    assert len(session.events) == TAP_REQUESTS
    return TAP_REQUESTS / seconds


def road_rate(doors: list[Door]) -> float:
    """Return requests a second through door, LiteLLM and tap, from one client a door."""

    def work(door: Door) -> None:
        for _ in range(ROAD_REQUESTS // CLIENTS):
            connection = UnixHTTPConnection(door.socket, 60)
            body = json.dumps({"model": MODEL, "max_tokens": 100, "messages": MESSAGES})
            connection.request("POST", "/v1/messages", body, {"x-api-key": door.key})
            assert connection.getresponse().read()
            connection.close()

    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(work, doors))
    return ROAD_REQUESTS / (time.perf_counter() - started)


def milliseconds(call: Callable[[], object]) -> float:
    """Return how long a call takes, in milliseconds."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def control_times(gateway: RunningGateway) -> dict[str, float]:
    """Return the median milliseconds of opening and closing a door."""
    doors: list[Door] = []
    opens = [milliseconds(lambda: doors.append(gateway.open(REQUEST))) for _ in range(CONTROL_CALLS)]
    closes = [milliseconds(lambda door=door: gateway.close(door)) for door in doors]  # type: ignore[misc]
    return {"open_ms": statistics.median(opens), "close_ms": statistics.median(closes)}


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory(prefix="wfb-") as name:
        directory = Path(name)
        (directory / "a.yaml").write_text(SCRIPT)
        measured = {"tap_requests_per_second": asyncio.run(tap_rate(directory))}
        started = time.perf_counter()
        with start_gateway(GatewayConfig()) as gateway:
            measured["start_ms"] = (time.perf_counter() - started) * 1000
            gateway.begin("bench", directory / "usage.jsonl", (Route(model=MODEL, cassettes=directory),))
            gateway.wait_ready()
            measured["ready_s"] = time.perf_counter() - started
            measured["self_test_ms"] = milliseconds(gateway.self_test)
            measured |= control_times(gateway)
            doors = [gateway.open(REQUEST) for _ in range(CLIENTS)]
            measured["road_requests_per_second"] = road_rate(doors)
            assert sum(len(gateway.close(door).events) for door in doors) == ROAD_REQUESTS
    print(json.dumps({key: round(value, 2) for key, value in measured.items()}, indent=1))


if __name__ == "__main__":
    main()
