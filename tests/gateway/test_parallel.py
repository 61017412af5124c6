"""How many requests go at once, and whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Flag

import pytest

from pytest_wfbench.gateway.asking import UnixHTTPConnection
from pytest_wfbench.gateway.supervisor import RunningGateway

from .conftest import Session
from .strict import PLACES, STRICT, most_at_once, span, together

pytestmark = pytest.mark.slow

OpenStrict = Callable[..., Session]


def status_of(session: Session) -> Callable[[], int]:
    return lambda: session.chat()[0]


class TestPlaces:
    def test_no_more_at_once(self, open_strict: OpenStrict) -> None:
        """As many requests are under way as there are places, over all cells, and never more; none is lost."""
        sessions = [open_strict("slow", f"wide-{number}") for number in range(5)]
        with ThreadPoolExecutor(5) as pool:
            found = [job.result(60) for job in [pool.submit(status_of(session)) for session in sessions]]
        assert found == [200] * 5
        used = [session.close() for session in sessions]
        assert most_at_once([event for one in used for event in one.events]) == PLACES
        assert max(one.stood for one in used) > 0.6
        assert min(one.stood for one in used) < 0.3

    def test_fair_over_cells(self, open_strict: OpenStrict) -> None:
        """A cell that asks for one thing does not wait for all that a greedy one has asked for before."""
        greedy = [open_strict("slow", "greedy-cell", f"work-{number}") for number in range(2)]
        modest = open_strict("slow", "modest-cell")
        with ThreadPoolExecutor(8) as pool:
            many = [*together(pool, 2, status_of(greedy[0])), *together(pool, 2, status_of(greedy[1]))]
            one = pool.submit(status_of(modest))
            assert one.result(60) == 200
            assert {job.result(60) for job in many} <= {200, 403}
        (asked,) = modest.close().events
        started = sorted(span(event)[0] for session in greedy for event in session.close().events)
        # Both places were taken; of what stood in line at most one of the greedy cell's came before it.
        assert sum(start < span(asked)[0] for start in started) <= PLACES + 1

    def test_counting_does_not_wait(self, open_strict: OpenStrict) -> None:
        """A token count needs no place."""
        busy, counting = open_strict("slow", "busy-cell"), open_strict("pay", "counting-cell")
        with ThreadPoolExecutor(4) as pool:
            asked = together(pool, PLACES, status_of(busy))
            body = {"model": STRICT, "messages": [{"role": "user", "content": "hello"}]}
            began = time.monotonic()
            assert counting.send("POST", "/v1/messages/count_tokens", body)[0] == 200
            assert not any(job.done() for job in asked)
            assert time.monotonic() - began < 0.5
            assert {job.result(60) for job in asked} == {200}


class TestEnds:
    def test_a_session_that_ends_in_line(self, open_strict: OpenStrict) -> None:
        """Who stands in line when the session closes is refused at once, and the harness is told; nothing goes up."""
        busy, late = open_strict("slow", "first-cell"), open_strict("slow", "late-cell")
        with ThreadPoolExecutor(4) as pool:
            asked = together(pool, PLACES, status_of(busy))
            (waiting,) = together(pool, 1, status_of(late))
            used = late.close()
            assert waiting.result(5) == 403
            assert {job.result(60) for job in asked} == {200}
        assert (used.standing, used.waiting, used.events, used.open_calls) == (True, False, (), 0)
        assert 0.1 < used.stood < 5
        assert not busy.close().standing

    def test_a_client_that_leaves_the_line(self, open_strict: OpenStrict) -> None:
        """Whoever went while he waited is not asked for, and keeps no place."""
        busy, gone = open_strict("slow", "busy-one"), open_strict("slow", "gone-one")
        with ThreadPoolExecutor(4) as pool:
            asked = together(pool, PLACES, status_of(busy))
            _ask_and_leave(gone)
            assert {job.result(60) for job in asked} == {200}
            again = [pool.submit(status_of(open_strict("slow", f"next-{number}"))) for number in range(PLACES)]
            assert {job.result(60) for job in again} == {200}
        used = gone.close()
        assert (used.events, used.open_calls) == ((), 0)

    def test_what_hangs_holds_its_place_no_longer_than_its_session(
        self, open_strict: OpenStrict, strict: RunningGateway
    ) -> None:
        """Places of requests that never end come back when their session is closed."""
        hung, next_one = open_strict("hang", "hung-cell"), open_strict("pay", "after-cell")
        done = Flag()
        with ThreadPoolExecutor(4) as pool:
            together(pool, PLACES, status_of(hung))
            waiting = pool.submit(status_of(next_one))
            waiting.add_done_callback(lambda job: done.set())
            assert not done.wait(1)
            assert hung.close().open_calls == PLACES
            assert waiting.result(30) == 200
        assert (strict.account().traffic.waited) > 1


def _ask_and_leave(session: Session) -> None:
    connection = UnixHTTPConnection(session.door.socket, 5)
    body = b'{"model": "replay/strict", "messages": [{"role": "user", "content": "hello"}]}'
    headers = {"authorization": f"Bearer {session.door.key}", "content-type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    time.sleep(0.2)
    connection.close()
