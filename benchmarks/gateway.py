"""What the gateway costs: what the tap adds to LiteLLM, a tap alone that replays, the whole road, the control calls.

Everything that is compared is measured in one run, turn about; clients, provider and tap share one process, so what is
told as the tap's is not less than it is.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from benchmarks.figures import Figure
from pytest_wfbench.evidence.event import Claims
from pytest_wfbench.gateway.answers.base import Answer, Asked
from pytest_wfbench.gateway.api import Door, Labels, OpenRequest, Route
from pytest_wfbench.gateway.asking import UnixHTTPConnection
from pytest_wfbench.gateway.calls import Calls, Session, Target
from pytest_wfbench.gateway.cassette import Script, load_cassettes
from pytest_wfbench.gateway.control import Provider
from pytest_wfbench.gateway.events import EventLog
from pytest_wfbench.gateway.forward import Forward
from pytest_wfbench.gateway.http import listen, unix_client
from pytest_wfbench.gateway.keys import Claim
from pytest_wfbench.gateway.proxy import Proxy
from pytest_wfbench.gateway.replay import FORMS, Replay
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.gateway.tap import Tap
from pytest_wfbench.wires import ANTHROPIC

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
ANSWER = Answer(
    "1", "scripted", 1, "A sentence of an answer. " * 20, (), Reported(ordinary_input=9, output=6), "end_turn"
)
CLIENTS = 8
TAP_REQUESTS = 2000
ROAD_REQUESTS = 400
CONTROL_CALLS = 100
PAIRS, WARM = 120, 20
ADDED_MS, TAP_RATE = 3, 300
ALONE = "alone"


class Times(NamedTuple):
    """Seconds to the first byte of an answer, to its last, and of this process's CPU."""

    first: float
    last: float
    cpu: float


@dataclass(frozen=True)
class Bench:
    """A tap's call table with one call in it, whose events go to a real file."""

    calls: Calls
    session: Session
    call_id: str

    @classmethod
    def make(cls, directory: Path, script: Script | None) -> Bench:
        target = Target("anthropic", "scripted", script)
        log = EventLog(directory / "usage.jsonl")
        session = Session(REQUEST, Claim("cell", "work", "d", (), 0), "s", {MODEL: target}, log)
        calls = Calls()
        return cls(calls, session, calls.open(session, target, MODEL, Claims(), "main").id)


def body_of(model: str, stream: bool) -> bytes:
    return json.dumps({"model": model, "max_tokens": 100, "stream": stream, "messages": MESSAGES}).encode()


async def tap_rates(scripts: Path, directory: Path) -> tuple[float, float]:
    """Return requests a second, and a second of CPU, that a tap alone answers from a script, streamed and metered."""
    script = load_cassettes(scripts).find(LABELS)
    bench, replay = Bench.make(directory, script), Replay()
    listener = await listen(directory / "tap", Tap(bench.calls, "secret", replay, replay, str).handle)
    headers = {"x-api-key": "secret", "x-wfbench-call": bench.call_id}
    body = body_of("scripted", stream=True)

    async def work(client: Any) -> None:
        for _ in range(TAP_REQUESTS // CLIENTS):
            async with client.post("http://tap/v1/messages", data=body, headers=headers) as answer:
                await answer.read()

    async with unix_client(directory / "tap") as client:
        started, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work(client) for _ in range(CLIENTS)))
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
    await listener.close(1)
    assert len(bench.session.events) == TAP_REQUESTS
    return TAP_REQUESTS / seconds, TAP_REQUESTS / cpu


async def provide(request: web.BaseRequest) -> web.StreamResponse:
    """Answer as the provider."""
    asked = json.loads(await request.read())
    form = FORMS[ANTHROPIC]
    if not asked.get("stream"):
        return web.json_response(form.whole(ANSWER, Asked()))
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for event in form.stream(ANSWER, Asked()):
        await response.write(event)
    await response.write_eof()
    return response


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    """Give the address of a provider."""
    runner = web.ServerRunner(web.Server(provide))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site.name
    await runner.cleanup()


async def timed(client: Any, key: str, call_id: str, stream: bool) -> Times:
    headers = {"authorization": f"Bearer {key}", "x-wfbench-call": call_id, "x-litellm-call-id": call_id}
    headers["content-type"] = "application/json"
    body = body_of("anthropic/scripted", stream)
    began, used = time.perf_counter(), time.process_time()
    async with client.post("http://proxy/v1/messages", data=body, headers=headers) as answer:
        await answer.content.readany()
        first = time.perf_counter() - began
        await answer.read()
        assert answer.status == 200
    return Times(first, time.perf_counter() - began, time.process_time() - used)


async def added(directory: Path) -> Iterator[Figure]:
    """Measure requests through LiteLLM with the tap behind it and without, turn about, whole and streamed.

    One LiteLLM serves both: what it sends under the call id ``alone`` the provider answers in the tap's place.
    """
    bench = Bench.make(directory, None)
    async with provider() as url:
        forward = Forward({"anthropic": Provider(name="anthropic", base_url=url, key="k")})
        proxy = Proxy(directory)
        tap = Tap(bench.calls, proxy.tap_secret, Replay(), forward, str)

        async def either(request: web.BaseRequest) -> web.StreamResponse:
            if request.headers.get("x-wfbench-call") != ALONE:
                return await tap.handle(request)
            return await provide(request) if request.path == "/v1/messages" else web.Response(status=204)

        listener = await listen(proxy.tap_socket, either)
        await proxy.start()
        watch = asyncio.create_task(proxy.watch())
        while not proxy.ready:
            await asyncio.sleep(0.1)
        async with unix_client(proxy.socket) as client:
            found = {stream: await _pairs(client, proxy.key, bench.call_id, stream) for stream in (False, True)}
        watch.cancel()
        await proxy.stop()
        await listener.close(1)
        await forward.close()
    return _figures(found)


async def _pairs(client: Any, key: str, call_id: str, stream: bool) -> list[tuple[Times, Times]]:
    pairs = []
    for number in range(WARM + PAIRS):
        order = (ALONE, call_id) if number % 2 else (call_id, ALONE)
        times = {name: await timed(client, key, name, stream) for name in order}
        pairs.append((times[ALONE], times[call_id]))
    return pairs[WARM:]


def _figures(found: dict[bool, list[tuple[Times, Times]]]) -> Iterator[Figure]:
    whole, streamed = found[False], found[True]
    yield from _compared("a whole answer", [(alone.last, tapped.last) for alone, tapped in whole])
    yield from _compared("first byte of a stream", [(alone.first, tapped.first) for alone, tapped in streamed])
    yield from _compared("last byte of a stream", [(alone.last, tapped.last) for alone, tapped in streamed])
    for name, pairs in (("a whole answer", whole), ("a stream", streamed)):
        added = _added_ms([(alone.cpu, tapped.cpu) for alone, tapped in pairs])
        yield Figure(f"the tap's CPU, {name}", added, "ms", ADDED_MS)


def _compared(name: str, pairs: Sequence[tuple[float, float]]) -> Iterator[Figure]:
    yield Figure(f"LiteLLM alone, {name}, median", _median_ms([alone for alone, _ in pairs]), "ms")
    yield Figure("  the tap adds", _added_ms(pairs), "ms", ADDED_MS)


def _median_ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


def _added_ms(pairs: Sequence[tuple[float, float]]) -> float:
    """Return by how much the second of each pair is slower, at the median: neighbours see the same machine."""
    return _median_ms([tapped - alone for alone, tapped in pairs])


def road_rate(doors: list[Door]) -> float:
    """Return requests a second through door, LiteLLM and tap, from one client a door."""

    def work(door: Door) -> None:
        for _ in range(ROAD_REQUESTS // CLIENTS):
            connection = UnixHTTPConnection(door.socket, 60)
            connection.request("POST", "/v1/messages", body_of(MODEL, stream=False), {"x-api-key": door.key})
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


def control_times(gateway: RunningGateway) -> Iterator[Figure]:
    """Yield the median milliseconds of opening and closing a door."""
    doors: list[Door] = []
    opens = [milliseconds(lambda: doors.append(gateway.open(REQUEST))) for _ in range(CONTROL_CALLS)]
    closes = [milliseconds(lambda door=door: gateway.close(door)) for door in doors]  # type: ignore[misc]
    yield Figure("opening a door, median", statistics.median(opens), "ms")
    yield Figure("closing a door, median", statistics.median(closes), "ms")


def road(scripts: Path, directory: Path) -> Iterator[Figure]:
    """Measure a gateway from its start to its doors."""
    started = time.perf_counter()
    with start_gateway(GatewayConfig()) as gateway:
        gateway.begin("bench", directory / "usage.jsonl", (Route(model=MODEL, cassettes=scripts),))
        gateway.wait_ready()
        yield Figure("gateway ready after", time.perf_counter() - started, "s")
        yield Figure("self-test", milliseconds(gateway.self_test), "ms")
        yield from control_times(gateway)
        doors = [gateway.open(REQUEST) for _ in range(CLIENTS)]
        yield Figure("whole road, replayed", road_rate(doors), "requests/s")
        assert sum(len(gateway.close(door).events) for door in doors) == ROAD_REQUESTS


def measure() -> Iterator[Figure]:
    """Yield every figure."""
    with tempfile.TemporaryDirectory(prefix="wfb-") as name:
        directory = Path(name)
        scripts = directory / "scripts"
        scripts.mkdir()
        (scripts / "a.yaml").write_text(SCRIPT)
        for room in ("tap", "litellm", "road"):
            (directory / room).mkdir()
        rate, per_cpu = asyncio.run(tap_rates(scripts, directory / "tap"))
        yield Figure("replay through the tap alone", rate, "requests/s", TAP_RATE, at_least=True)
        yield Figure("  by CPU, its clients' included", per_cpu, "requests/s", TAP_RATE, at_least=True)
        yield from asyncio.run(added(directory / "litellm"))
        yield from road(scripts, directory / "road")
