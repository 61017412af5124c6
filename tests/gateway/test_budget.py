"""Budgets at the door: what is charged, what is refused, and what a gateway that begins anew knows of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from pytest_wfbench.gateway.api import Event, GatewayRefused, Route, Terms
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.usage.charge import BYTES_PER_TOKEN

from .conftest import Session
from .strict import (
    ANSWER,
    CELL_BUDGET,
    INPUT_PRICE,
    OTHER,
    OUTPUT_PRICE,
    PRICES,
    STRICT,
    charged,
    request_of,
    write_scripts,
)

pytestmark = pytest.mark.slow

OpenStrict = Callable[..., Session]


def asked(session: Session, **body: object) -> int:
    """Ask for one answer, and return the status; 0 where the answer broke off."""
    with suppress(OSError, HTTPException):
        return session.chat(**body)[0]
    return 0


class TestCell:
    def test_refused_once_it_is_spent(self, open_strict: OpenStrict) -> None:
        """What reaches the budget is let through, then nothing of the cell: 403, without an event; others go on."""
        cell, other = open_strict("pay", "spent"), open_strict("pay", "rich")
        assert [asked(cell) for _ in range(4)] == [200, 200, 200, 403]
        status, _, answer = cell.chat()
        assert (status, b"--wfbench-cell-max-cost" in answer) == (403, True)
        assert asked(other) == 200
        used = cell.close()
        assert (len(used.events), used.over_budget, used.sweep_spent, used.refused) == (3, "cell", None, 2)
        assert other.close().over_budget is None

    def test_all_its_sessions_count(self, open_strict: OpenStrict) -> None:
        """A later session of the cell has what the earlier ones left; its judge is not the cell's expense."""
        first, second, judge = (open_strict("pay", "shared", name) for name in ("plan", "work", "judge"))
        assert [asked(first), asked(second), asked(judge), asked(judge), asked(judge)] == [200] * 5
        assert [asked(second), asked(first), asked(second)] == [200, 403, 403]
        assert asked(judge) == 200

    def test_whoever_waits_is_not_let_through_later(self, open_strict: OpenStrict) -> None:
        """Beyond the budget go those that were under way when it was reached, not those that stood in line."""
        session = open_strict("slow", "crowd")
        with ThreadPoolExecutor(8) as pool:
            found = [job.result(60) for job in [pool.submit(asked, session) for _ in range(8)]]
        # Two at once: 0.2 and 0.2 are below 0.5, so two more went, and were under way together.
        assert sorted(found) == [200] * 4 + [403] * 4
        assert len(session.close().events) == 4

    def test_failures_before_any_output_are_free(self, open_strict: OpenStrict, strict: RunningGateway) -> None:
        """An error of the provider's costs nothing, and so does a token count, which a spent budget does not stop."""
        before = charged(strict)
        session = open_strict("down", "unlucky")
        assert asked(session) >= 500
        assert charged(strict) == before
        spent = open_strict("pay", "counting")
        assert [asked(spent) for _ in range(4)] == [200, 200, 200, 403]
        body = {"model": STRICT, "messages": [{"role": "user", "content": "hello"}]}
        assert spent.send("POST", "/v1/messages/count_tokens", body)[0] == 200

    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    def test_a_cut_answer_is_charged_at_its_most(
        self, open_strict: OpenStrict, strict: RunningGateway, stream: bool
    ) -> None:
        """The output that nobody counted is charged at the request's own bound; the event's usage stays unknown."""
        before, assumed = charged(strict), strict.account().spending.assumed
        session = open_strict("cut", f"cut-{stream}")
        asked(session, stream=stream, max_tokens=45)
        (event,) = session.close().events
        cost = charged(strict) - before
        assert (event.status, event.max_output) == ("cut", 45)
        known = 100 if stream else event.body_bytes // BYTES_PER_TOKEN
        assert cost == pytest.approx(known * INPUT_PRICE + 45 * OUTPUT_PRICE)
        assert strict.account().spending.assumed == pytest.approx(assumed + cost)

    def test_a_provider_that_breaks_off(self, open_strict: OpenStrict) -> None:
        """A budget that went on answers a provider broke off is spent, and that is told from the cell's own doing."""
        session = open_strict("cut", "wasted")
        asked(session, stream=True, max_tokens=45)
        assert asked(session) == 403
        assert session.close().over_budget == "provider"

    def test_no_client_is_charged_beyond_the_model(self, open_strict: OpenStrict, strict: RunningGateway) -> None:
        """A bound that no model can reach is charged as the model's own: nobody ends a sweep with a large number."""
        before = charged(strict)
        session = open_strict("cut", "boastful")
        asked(session, stream=True, max_tokens=10**9)
        assert charged(strict) - before <= 1000 * OUTPUT_PRICE + 1
        session.close()

    def test_what_hangs_is_charged(self, open_strict: OpenStrict, strict: RunningGateway) -> None:
        """A request that is still open when its session ends has no event, and is paid for all the same."""
        before = charged(strict)
        session = open_strict("hang", "hung")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asked, session, max_tokens=20)
            time.sleep(1)
            used = session.close()
        assert (used.open_calls, used.events) == (1, ())
        assert charged(strict) - before >= 20 * OUTPUT_PRICE


class TestSweep:
    def test_the_harness_itself_is_free(self, strict: RunningGateway) -> None:
        """The self-test is nobody's expense."""
        before = charged(strict)
        strict.self_test()
        assert charged(strict) == before

    def test_a_new_gateway_knows_what_was_spent(self, tmp_path: Path, strict: RunningGateway) -> None:
        """What stands in the events of this sweep is spent, cut answers and judges included; another's is not."""
        session = Session(strict, strict.open(request_of("pay", "told")), STRICT)
        asked(session)
        (paid,) = session.close().events
        cut = Session(strict, strict.open(request_of("cut", "told")), STRICT)
        asked(cut, stream=True, max_tokens=45)
        events = [paid, *cut.close().events, paid.model_copy(update={"session": "judge"})]
        assert _refused(tmp_path, [paid], max_cost=ANSWER + 0.01) is None
        assert _refused(tmp_path, events[:2], cell_max_cost=0.6) == "provider"
        assert _refused(tmp_path, events[:2], cell_max_cost=0.15) == "cell"
        assert _refused(tmp_path, events[:1] + events[2:], cell_max_cost=0.3) is None
        assert _refused(tmp_path, events, max_cost=0.9) == "sweep"
        foreign = [event.model_copy(update={"sweep_id": "another"}) for event in events]
        assert _refused(tmp_path, foreign, max_cost=0.1) is None

    def test_overshoot_is_told(self, tmp_path: Path) -> None:
        """The books say what was charged, and how much of it beyond the budget."""
        events = [_event(usd) for usd in (0.5, 0.75)]
        with _begun(tmp_path, events, Terms(max_cost=1.0, prices=_prices(tmp_path))) as gateway:
            spending = gateway.account().spending
        assert spending is not None
        assert (spending.charged, spending.overshoot, spending.assumed) == (1.25, 0.25, 0.0)

    def test_prices_that_do_not_read(self, tmp_path: Path) -> None:
        """A table that cannot be read is refused by name; without a budget none is read."""
        bad = tmp_path / "bad.json"
        bad.write_text("[]")
        with start_gateway(GatewayConfig(proxy=False)) as gateway, pytest.raises(GatewayRefused, match=r"bad\.json"):
            gateway.begin("sweep", tmp_path / "usage.jsonl", (), terms=Terms(max_cost=1.0, prices=bad))
        with start_gateway(GatewayConfig(proxy=False)) as gateway:
            gateway.begin("sweep", tmp_path / "usage.jsonl", (), terms=Terms(prices=bad))
            assert gateway.account().spending is None


def _event(usd: float) -> Event:
    return Event(
        sweep_id="sweep",
        cell_id="c",
        session="work",
        call_id="x",
        status="success",
        requested_model=OTHER,
        answered_model="claude-strict",
        provider="anthropic",
        wire="anthropic-messages",
        started_at="2026-01-01T00:00:00.000Z",
        completed_at="2026-01-01T00:00:01.000Z",
        ttft_ms=1.0,
        http_status=200,
        native_usage={
            "input_tokens": round(usd / INPUT_PRICE),
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "output_tokens": 0,
        },
    )


def _prices(directory: Path) -> Path:
    path = directory / "prices.json"
    path.write_text(json.dumps(PRICES))
    return path


def _begun(directory: Path, events: list[Event], terms: Terms) -> RunningGateway:
    """Start a gateway without LiteLLM that finds events of before."""
    scripts = directory / "scripts"
    scripts.mkdir(exist_ok=True)
    write_scripts(scripts)
    usage = directory / "usage.jsonl"
    usage.write_text("".join(event.model_dump_json() + "\n" for event in events))
    gateway = start_gateway(GatewayConfig(proxy=False))
    gateway.begin("sweep", usage, (Route(model=STRICT, cassettes=scripts),), terms=terms)
    return gateway


def _refused(directory: Path, events: list[Event], **limits: float) -> str | None:
    """Whose budget refuses the first request to a gateway that found these events; none where it is let through."""
    with _begun(directory, events, Terms(prices=_prices(directory), **limits)) as gateway:
        session = Session(gateway, gateway.open(request_of("pay", "told")), STRICT)
        status = asked(session)
        used = session.close()
    assert (status, used.refused) == ((403, 1) if used.over_budget else (502, 0))
    return used.over_budget


assert CELL_BUDGET > 2 * ANSWER
