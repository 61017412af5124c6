"""A provider that says when to come again: the gateway waits in its clients' place."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.gateway.roads import LONGEST, REPEATS, SHORTEST, Patience, Roads, pause_of
from pytest_wfbench.gateway.supervisor import RunningGateway
from pytest_wfbench.usage.cell import cell_usage
from tests.suite import until

from .conftest import Session
from .strict import OTHER, STRICT

OpenStrict = Callable[..., Session]
USER = [{"role": "user", "content": "hello"}]
BODIES = {
    "/v1/messages": {"messages": USER, "max_tokens": 50},
    "/v1/responses": {"input": "hello"},
    "/v1/chat/completions": {"messages": USER},
}


@pytest.mark.slow
class TestRoad:
    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    @pytest.mark.parametrize("path", BODIES)
    def test_the_client_gets_its_answer(self, open_strict: OpenStrict, path: str, stream: bool) -> None:
        """A client that would not ask again is served all the same; both attempts are events, and the first is free."""
        session = open_strict("busy", f"{path[4:8]}-{stream}")
        began = time.monotonic()
        status, _, answer = session.post(path, stream=stream, **BODIES[path])
        seconds = time.monotonic() - began
        used = session.close()
        assert (status, b"Here you are." in answer, seconds >= 2) == (200, True, True)
        assert [(e.status, e.http_status, e.attempt) for e in used.events] == [("failure", 429, 1), ("success", 200, 2)]
        assert len({event.call_id for event in used.events}) == 1
        # The road closes when the provider has said so; what LiteLLM makes of that first is no wait of ours.
        assert 0.3 < used.stood < seconds
        total = cell_usage(used.events)
        assert (total.incomplete, total.usage.output, total.failed_requests) == (False, 10, 1)

    def test_everybody_of_the_model_waits(self, open_strict: OpenStrict, strict: RunningGateway) -> None:
        """A closed road is closed to every session of its model, and to no other model; the books tell of it."""
        before = {pause.model: pause for pause in strict.account().traffic.pauses}
        told, same, other = (
            open_strict("busy", "told-cell"),
            open_strict("pay", "same-cell"),
            open_strict("pay", "other-cell", model=OTHER),
        )
        with ThreadPoolExecutor(3) as pool:
            first = pool.submit(told.chat)
            until(lambda: _times(strict) > (before[STRICT].times if STRICT in before else 0), 20, "the road is closed")
            began = time.monotonic()
            waiting = pool.submit(same.chat)
            assert other.chat()[0] == 200
            assert time.monotonic() - began < 1
            assert not waiting.done()
            assert (waiting.result(30)[0], first.result(30)[0]) == (200, 200)
            assert time.monotonic() - began > 1
        assert same.close().stood > 1
        assert other.close().stood < 0.5
        after = {pause.model: pause for pause in strict.account().traffic.pauses}
        old = before.get(STRICT)
        assert after[STRICT].times == (old.times if old else 0) + 1
        assert after[STRICT].seconds == pytest.approx((old.seconds if old else 0) + 2, abs=0.1)
        assert OTHER not in after

    def test_patience_has_an_end(self, open_strict: OpenStrict) -> None:
        """A provider that says so for ever is believed so many times; then its client is told what it said."""
        session = open_strict("always-busy", "patient-cell", model=OTHER)
        status, headers, answer = session.chat()
        used = session.close()
        assert (status, headers["retry-after"], b"slow down" in answer) == (429, "0", True)
        assert [event.attempt for event in used.events] == list(range(1, REPEATS + 2))

    def test_without_a_word_on_when(self, open_strict: OpenStrict) -> None:
        """Without Retry-After nobody waits here: the client knows best when to ask again."""
        session = open_strict("curt", "curt-cell")
        assert session.chat()[0] == 429
        assert len(session.close().events) == 1

    def test_a_session_that_ends_meanwhile(self, open_strict: OpenStrict) -> None:
        """A session's end does not wait for the road, and is told that the session stood still."""
        session = open_strict("busy", "ending-cell")
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(session.chat)
            time.sleep(0.8)
            began = time.monotonic()
            used = session.close()
            assert time.monotonic() - began < 1.5
            assert asked.result(5)[0] == 403
        assert (used.standing, len(used.events), used.open_calls) == (True, 1, 0)


def _times(gateway: RunningGateway) -> int:
    return sum(pause.times for pause in gateway.account().traffic.pauses if pause.model == STRICT)


class TestWord:
    @pytest.mark.parametrize(
        ("said", "seconds"),
        [
            ("7", 7), ("7.5", 7.5), (" 7 ", 7), ("0", SHORTEST), ("120", 120), ("3600", LONGEST), ("9" * 5000, LONGEST),
            ("", None), ("soon", None), ("-5", None), ("nan", None), ("inf", None), ("1e3", None), ("٣", None),
            ("Fri, 99 Foo 2026", None), ("Thu, 01 Jan 1970 00:00:00 GMT", SHORTEST),
            ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST), ("Fri, 31 Dec 99999 23:59:59 GMT", None),
        ],
    )  # fmt: skip
    def test_forms(self, said: str, seconds: float | None) -> None:
        """Seconds and dates are read, in bounds; anything else is no word on when."""
        assert pause_of(429, said) == seconds

    @pytest.mark.parametrize("zone", ["GMT", "-0000"])
    def test_dates(self, zone: str) -> None:
        """A date is as good as the seconds until then."""
        at = datetime.now(UTC) + timedelta(seconds=30)
        said = format_datetime(at, usegmt=True).replace("GMT", zone)
        assert pause_of(429, said) == pytest.approx(30, abs=2)

    @pytest.mark.parametrize("status", [200, 400, 500, 503, 529])
    def test_only_429(self, status: int) -> None:
        """No other status closes a road."""
        assert pause_of(status, "7") is None

    @given(st.text(max_size=40))
    def test_any_text(self, said: str) -> None:
        """Whatever a provider says, a pause is none or within bounds."""
        pause = pause_of(429, said)
        assert pause is None or SHORTEST <= pause <= LONGEST

    @given(st.lists(st.one_of(st.floats(SHORTEST, 5), st.floats(SHORTEST, LONGEST)), min_size=REPEATS + 2, max_size=40))
    def test_patience(self, pauses: list[float]) -> None:
        """However a provider goes on, one request waits so often and so long, and no more."""
        assert not Patience().spend(None)
        patience, waited = Patience(), [0.0]
        for pause in pauses:
            if not patience.spend(pause):
                break
            waited.append(pause)
        assert len(waited) - 1 <= REPEATS
        assert sum(waited) <= Patience().seconds + 1e-6

    @given(st.lists(st.floats(1, 100), min_size=1, max_size=20))
    def test_overlapping_pauses(self, pauses: list[float]) -> None:
        """Pauses that come at once close the road for the longest of them, and are counted so."""
        roads = Roads()
        for pause in pauses:
            roads.close("m", pause)
        (told,) = roads.pauses()
        assert (told.times, roads.is_open("m"), roads.is_open("n")) == (len(pauses), False, True)
        assert told.seconds == pytest.approx(max(pauses), abs=0.5)
