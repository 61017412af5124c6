"""A real gateway on strict terms: budgets, two requests at once, and models that tell clients to come again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from pytest_wfbench.gateway.api import Event, Labels, OpenRequest, Route, Terms
from pytest_wfbench.gateway.selftest import SELF_TEST_SCRIPT
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway

STRICT, OTHER = "replay/strict", "replay/other"
CELL_BUDGET, PLACES = 0.5, 2
INPUT_PRICE, OUTPUT_PRICE = 0.001, 0.01
# What one answer of 100 and 10 tokens costs.
ANSWER = 0.2
PRICE = {
    "input_cost_per_token": INPUT_PRICE,
    "output_cost_per_token": OUTPUT_PRICE,
    "cache_read_input_token_cost": INPUT_PRICE,
    "cache_creation_input_token_cost": INPUT_PRICE,
    "max_output_tokens": 1000,
}
PRICES = {"claude-strict": PRICE, SELF_TEST_SCRIPT.cassette.model: PRICE}
TURN = "text: Here you are.\n    usage: {ordinary_input: 100, cache_read_input: 0, cache_write_input: 0, output: 10}"
BUSY = "error: {{status: 429, type: rate_limit_error, message: slow down{}}}"
SCRIPTS = {
    "pay": "",
    "cut": "cut: true",
    "slow": "delay: 700ms",
    "hang": "delay: 10m",
    "down": "error: {status: 503, type: overloaded_error, message: out of order}",
    "busy": BUSY.format(", retry_after: 2, times: 1"),
    "always-busy": BUSY.format(", retry_after: 0"),
    "curt": BUSY.format(""),
}


def write_scripts(directory: Path) -> None:
    """Write one script a task."""
    for name, fault in SCRIPTS.items():
        head = f"model: claude-strict\nprovider: anthropic\nmatch: {{task: {name}}}\nturns:\n"
        (directory / f"{name}.yaml").write_text(f"{head}  - {TURN}\n    {fault}\n")


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A running gateway with terms; LiteLLM boots once for all tests of them."""
    directory, results = tmp_path_factory.mktemp("strict"), tmp_path_factory.mktemp("strict-results")
    write_scripts(directory)
    prices = results / "prices.json"
    prices.write_text(json.dumps(PRICES))
    terms = Terms(max_cost=1000.0, cell_max_cost=CELL_BUDGET, prices=prices, max_parallel=PLACES)
    routes = tuple(Route(model=model, cassettes=directory) for model in (STRICT, OTHER))
    with start_gateway(GatewayConfig()) as running:
        running.begin("sweep", results / "usage.jsonl", routes, terms=terms)
        running.wait_ready()
        yield running


def request_of(task: str, cell: str, session: str = "work", model: str = STRICT) -> OpenRequest:
    """Return what opens a session that plays a task's script."""
    labels = Labels(task=task, arm="workflow", session=session, run=1, agent="mini")
    return OpenRequest(cell_id=cell, labels=labels, models=(model,), seconds=600)


def charged(gateway: RunningGateway) -> float:
    """What the sweep's budget was charged so far."""
    spending = gateway.account().spending
    assert spending is not None
    return spending.charged


def span(event: Event) -> tuple[float, float]:
    """When a request was under way."""
    return datetime.fromisoformat(event.started_at).timestamp(), datetime.fromisoformat(event.completed_at).timestamp()


def most_at_once(events: list[Event]) -> int:
    """How many requests were under way at once, at most."""
    spans = [span(event) for event in events]
    return max(sum(begin <= start < end for begin, end in spans) for start, _ in spans)


def together(pool: ThreadPoolExecutor, count: int, ask: Callable[[], int]) -> list[Future[int]]:
    """Ask several times at once."""
    asked = [pool.submit(ask) for _ in range(count)]
    time.sleep(0.2)
    return asked
