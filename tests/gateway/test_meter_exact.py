"""The meter against a provider's own ledger: many cells at once, over the whole road, to the token."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.gateway.api import Labels, OpenRequest, Route, SessionUsage
from pytest_wfbench.gateway.control import Provider
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.usage.cell import cell_usage, sum_usage
from pytest_wfbench.wires import ANTHROPIC

from .conftest import Session
from .scripted import Act, Entry, Request, Scripted, scripted

pytestmark = pytest.mark.slow

MODELS = ("anthropic/claude-sonnet-4-5", "openai/gpt-5")
ROUTES = ("/v1/messages", "/v1/responses", "/v1/chat/completions")
CELLS, REQUESTS = 8, 25
STREAMS = 50
# Cells in which some answers break off: of Anthropic's the input is known by then, of OpenAI's nothing is.
CUT_ANTHROPIC, CUT_OPENAI = 6, 7
NOTHING = Usage(**dict.fromkeys(Usage.model_fields, 0))


def brain(request: Request) -> Act:
    """Bill every request differently, and stumble where the request says so."""
    draw = Random(request.number)
    ordinary, read, write, output = (draw.randrange(1, 10**6) for _ in range(4))
    usage = Reported(ordinary_input=ordinary, cache_read_input=read, cache_write_input=write, output=output)
    if request.wire != ANTHROPIC:
        usage = usage.model_copy(update={"reasoning_output": draw.randrange(output)})
    if "FAIL." in request.text:
        return Act("out of order", status=500, usage=usage)
    return Act(
        "a sentence " * 20, usage=usage, cut="CUT." in request.text, pause=0.02 if "SLOWLY." in request.text else 0
    )


@dataclass(frozen=True)
class Road:
    """A gateway with a real LiteLLM, and the provider at its end."""

    gateway: RunningGateway
    provider: Scripted

    def open(self, cell: str) -> Session:
        labels = Labels(task="t", arm="a", session="work", run=1, agent="mini")
        return Session(
            self.gateway, self.gateway.open(OpenRequest(cell_id=cell, labels=labels, models=MODELS, seconds=600))
        )

    def ledger(self) -> dict[str, list[Entry]]:
        """What the provider billed, by the cell that stands in the request."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.provider.ledger.entries:
            found[entry.request.text.partition("CELL<")[2].partition(">")[0]].append(entry)
        return found


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Road]:
    with scripted(brain) as provider:
        known = tuple(Provider(name=name, base_url=provider.url, key="k") for name in ("anthropic", "openai"))
        with start_gateway(GatewayConfig(providers=known)) as gateway:
            usage = tmp_path_factory.mktemp("exact") / "usage.jsonl"
            gateway.begin("sweep", usage, tuple(Route(model=model) for model in MODELS))
            gateway.wait_ready()
            yield Road(gateway, provider)


def body_of(path: str, text: str, stream: bool) -> dict[str, Any]:
    user = [{"role": "user", "content": text}]
    asked = {"input": text} if path == "/v1/responses" else {"messages": user}
    return {**asked, "stream": stream, **({"max_tokens": 100} if path == "/v1/messages" else {})}


def work(session: Session, cell: int) -> None:
    """Ask in every format, streaming and not, under forged ids, as a subagent, and with the cell's own trouble."""
    for number in range(REQUESTS):
        path, model = ROUTES[number % 3], MODELS[number // 3 % 2]
        trouble = "FAIL." if number % 11 == 4 else ""
        if cell in (CUT_ANTHROPIC, CUT_OPENAI) and number % 7 == 3:
            path, model, trouble = ROUTES[0], MODELS[cell == CUT_OPENAI], "CUT."
        other = f"cell-{(cell + 1) % CELLS}"
        headers = {"x-claude-code-session-id": other, "x-claude-code-agent-id": "scout"} if number % 5 == 2 else {}
        text = f"CELL<cell-{cell}> {trouble}"
        body = {"model": model, **body_of(path, text, stream=number % 2 == 0 or trouble == "CUT.")}
        status, _, _ = session.send("POST", path, body, headers=headers)
        assert (status >= 400) == (trouble == "FAIL.") or trouble == "CUT."


def billed(entry: Entry) -> Usage:
    """What the provider bills for a request, as far as it came to say so."""
    act, usage = entry.act, entry.act.usage
    if act.status >= 400:
        return NOTHING
    if act.cut and entry.request.wire != ANTHROPIC:
        return Usage()
    known = {name: value for name, value in usage if name in Usage.model_fields}
    return Usage(**{**known, "total_input": usage.whole_input, **({"output": None} if act.cut else {})})


@pytest.fixture(scope="module")
def used(road: Road) -> dict[str, SessionUsage]:
    """Two hundred requests, all cells at once."""
    sessions = [road.open(f"cell-{cell}") for cell in range(CELLS)]
    with ThreadPoolExecutor(CELLS) as pool:
        list(pool.map(work, sessions, range(CELLS)))
    return {f"cell-{cell}": session.close() for cell, session in enumerate(sessions)}


class TestLedger:
    @pytest.mark.parametrize("cell", [f"cell-{cell}" for cell in range(CELLS)])
    def test_sums(self, road: Road, used: dict[str, SessionUsage], cell: str) -> None:
        """The sum of a cell is its provider's to the token; what a cut answer left unsaid is unknown to both."""
        entries, told = road.ledger()[cell], used[cell]
        expected = sum_usage([billed(entry) for entry in entries])
        total = cell_usage(told.events, told.open_calls)
        assert total.usage == expected
        assert (total.requests, told.open_calls) == (REQUESTS, 0)
        assert len(entries) == REQUESTS
        assert total.incomplete == (cell in ("cell-6", "cell-7"))
        assert total.failed_requests == sum(entry.act.status >= 400 or entry.act.cut for entry in entries)

    def test_the_troubled_cells_are_troubled(self, road: Road, used: dict[str, SessionUsage]) -> None:
        """Failures, cuts, subagents, forged ids and all formats were there; Anthropic tells the input before a cut."""
        events = [event for told in used.values() for event in told.events]
        assert {event.wire for event in events} == {"anthropic-messages", "openai-responses", "openai-chat"}
        assert {event.status for event in events} == {"success", "failure", "cut"}
        assert any(event.conversation == "subagent" for event in events)
        assert all(event.cell_id == cell for cell, told in used.items() for event in told.events)
        assert any(event.claims.session_id not in (None, event.cell_id) for event in events)
        half, none = (cell_usage(used[f"cell-{cell}"].events).usage for cell in (CUT_ANTHROPIC, CUT_OPENAI))
        assert (half.total_input is None, half.output, none.total_input, none.output) == (False, None, None, None)


class TestStreams:
    def test_fifty_at_once(self, road: Road) -> None:
        """Fifty streams that overlap all come whole, and are metered as billed."""
        sessions = [road.open(f"stream-{number}") for number in range(5)]

        def stream(number: int) -> bytes:
            path, model = ROUTES[number % 3], MODELS[number % 2]
            text = f"CELL<stream-{number % 5}> SLOWLY."
            body = {"model": model, **body_of(path, text, stream=True)}
            return sessions[number % 5].send("POST", path, body)[2]

        with ThreadPoolExecutor(STREAMS) as pool:
            answers = list(pool.map(stream, range(STREAMS)))
        assert all(spoken(answer) == "a sentence " * 20 for answer in answers)
        ledger = road.ledger()
        for number, session in enumerate(sessions):
            told = session.close()
            total = cell_usage(told.events, told.open_calls)
            assert total.usage == sum_usage([billed(entry) for entry in ledger[f"stream-{number}"]])
            assert (total.incomplete, total.requests) == (False, STREAMS // 5)


def spoken(stream: bytes) -> str:
    """The text of a stream, whichever its format."""
    said = []
    for line in stream.splitlines():
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        delta = event.get("delta") or {}
        if event.get("type") == "response.output_text.delta":
            said.append(delta)
        elif event.get("type") == "content_block_delta":
            said.append(delta.get("text", ""))
        elif event.get("choices"):
            said.append(event["choices"][0]["delta"].get("content") or "")
    return "".join(said)
