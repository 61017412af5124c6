"""Answers that no request through the tap was made for: metered by what LiteLLM counted, and marked so."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Claims
from pytest_wfbench.gateway import fallback as fallback_module
from pytest_wfbench.gateway.api import Labels, OpenRequest, Route
from pytest_wfbench.gateway.calls import Calls, Target
from pytest_wfbench.gateway.calls import Session as Ledger
from pytest_wfbench.gateway.control import Provider
from pytest_wfbench.gateway.fallback import Report, unseen
from pytest_wfbench.gateway.keys import Claim
from pytest_wfbench.gateway.meter import Meter
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.usage.cell import cell_usage

from .conftest import Session

MODEL = "openai/elsewhere"
# A gateway whose LiteLLM answers one model by itself, as it would for providers with transports of their own.
SHIM = f"""#!{sys.executable}
import pytest_wfbench.gateway.proxy as proxy
from pytest_wfbench.gateway.server import main

plain = proxy.configuration

def configuration():
    made = plain()
    params = {{"model": "openai/elsewhere", "api_key": "none", "mock_response": "From elsewhere."}}
    made["model_list"].insert(0, {{"model_name": "{MODEL}", "litellm_params": params}})
    return made

proxy.configuration = configuration
main()
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    root = tmp_path_factory.mktemp("fallback")
    shim = root / "server"
    shim.write_text(SHIM)
    shim.chmod(0o755)
    known = Provider(name="openai", base_url="http://127.0.0.1:9", key="k")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(shim))
        started = start_gateway(GatewayConfig(providers=(known,)))
    with started as running:
        running.begin("sweep", root / "usage.jsonl", (Route(model=MODEL),))
        running.wait_ready()
        yield running


@pytest.mark.slow
class TestRoad:
    @pytest.mark.parametrize(
        ("path", "stream", "counted"),
        [
            ("/v1/chat/completions", False, True),
            ("/v1/chat/completions", True, True),
            ("/v1/messages", False, True),
            # LiteLLM makes no report of this one: unknown, not zero.
            ("/v1/messages", True, False),
        ],
        ids=["chat", "chat-streamed", "messages", "messages-streamed"],
    )
    def test_marked(self, gateway: RunningGateway, path: str, stream: bool, counted: bool) -> None:
        """An answer that the tap did not see is one event, in LiteLLM's numbers, and so says the cell."""
        labels = Labels(task="t", arm="a", session="work", run=1, agent="mini")
        request = OpenRequest(cell_id="cell", labels=labels, models=(MODEL,), seconds=60)
        session = Session(gateway, gateway.open(request))
        body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
        status, _, answer = session.send("POST", path, body)
        assert (status, b"elsewhere" in answer) == (200, True), answer
        (event,) = session.close().events
        total = cell_usage([event])
        assert (event.status, event.wire, event.usage_source) == ("success", "litellm", "litellm")
        assert (total.source, total.requests) == ("litellm", 1)
        assert ((total.usage.total_input or 0) > 0, (total.usage.output or 0) > 0) == (counted, counted)
        assert total.incomplete or counted


def meter() -> Meter:
    labels = Labels(task="t", arm="a", session="work", run=1, agent="mini")
    request = OpenRequest(cell_id="cell", labels=labels, models=(MODEL,), seconds=60)
    target = Target("openai", "elsewhere")
    ledger = Ledger(request, Claim("cell", "work", "door", (), 0), "s", {MODEL: target}, None)
    made = Meter(Calls().open(ledger, target, MODEL, Claims(), "main"), "litellm", 1, str)
    made.status = 200
    return made


class Body:
    """A callback's request."""

    def __init__(self, data: bytes) -> None:
        self.content = self
        self._data = data

    async def iter_any(self) -> Any:
        yield self._data


class TestReport:
    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"usage": 5, "model": []}', b"[" * 50_000, b"x" * 70_000])
    def test_what_cannot_be_read(self, data: bytes) -> None:
        """A report that cannot be read leaves the tokens unknown, not zero."""

        async def scenario() -> Any:
            report = Report()
            await report.read(Body(data))  # type: ignore[arg-type]
            return await unseen(report, meter())

        event = asyncio.run(scenario())
        assert (event.native_usage, event.answered_model, event.usage_source) == (None, None, "litellm")
        assert cell_usage([event]).incomplete

    def test_none_that_comes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A report that does not come is not waited for, and its tokens are unknown."""
        monkeypatch.setattr(fallback_module, "REPORT_SECONDS", 0.05)
        event = asyncio.run(unseen(Report(), meter()))
        assert cell_usage([event]).usage.output is None

    def test_what_it_says(self) -> None:
        """A report's numbers are the event's."""

        async def scenario() -> Any:
            report = Report()
            usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
            await report.read(Body(json.dumps({"usage": usage, "model": "m"}).encode()))  # type: ignore[arg-type]
            return await unseen(report, meter())

        usage = cell_usage([asyncio.run(scenario())]).usage
        assert (usage.total_input, usage.cache_read_input, usage.output) == (9, 2, 4)
