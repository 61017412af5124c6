"""The line before the gate, against a model of what is fair."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.gateway.fairness import FairQueue, Turnstile

KEYS = st.sampled_from("abcd")
PUT, TAKE = KEYS.map(lambda key: ("put", key)), st.just(("take", ""))
# Mostly arrivals, so that there is a line.
STEPS = st.lists(st.one_of(PUT, PUT, PUT, TAKE, TAKE, KEYS.map(lambda key: ("drop", key))), min_size=15, max_size=60)


@given(STEPS)
def test_turns(steps: list[tuple[str, str]]) -> None:
    """First come, first served within a key; no key is served twice while another one waits; none is lost."""
    queue: FairQueue[int] = FairQueue()
    waiting: dict[str, list[int]] = defaultdict(list)
    served_since: dict[str, Counter[str]] = {}
    for number, (step, key) in enumerate(steps):
        if step == "put":
            queue.put(key, number)
            waiting[key].append(number)
            served_since.setdefault(key, Counter())
        elif step == "drop" and waiting[key]:
            gone = waiting[key].pop(len(waiting[key]) // 2)
            queue.drop(key, gone)
        elif step == "take" and queue:
            item = queue.take()
            (key,) = [name for name, own in waiting.items() if item in own]
            assert waiting[key].pop(0) == item
            served_since.pop(key)
            for others in served_since.values():
                others[key] += 1
                assert others[key] == 1, "served twice while another waited"
            if waiting[key]:
                served_since[key] = Counter()
        for name in [name for name in served_since if not waiting[name]]:
            del served_since[name]
        assert bool(queue) == any(waiting.values())


@given(st.integers(1, 4), st.lists(st.tuples(KEYS, st.integers(0, 3), st.booleans()), max_size=30))
def test_places(places: int, visitors: list[tuple[str, int, bool]]) -> None:
    """However visitors come, stay and give up, there are never too many inside, and every place comes back."""

    async def visit() -> tuple[int, int]:
        turnstile = Turnstile(places)
        inside, most = 0, 0

        async def go(key: str, ticks: int) -> None:
            nonlocal inside, most
            await turnstile.enter(key)
            inside += 1
            most = max(most, inside)
            try:
                for _ in range(ticks):
                    await asyncio.sleep(0)
            finally:
                inside -= 1
                turnstile.leave()

        tasks = []
        for key, ticks, gives_up in visitors:
            tasks.append(asyncio.create_task(go(key, ticks)))
            await asyncio.sleep(0)
            if gives_up:
                tasks[len(tasks) // 2].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        for _ in range(places):
            await asyncio.wait_for(turnstile.enter("last"), 1)
        return most, inside

    most, inside = asyncio.run(visit())
    assert (most <= places, inside) == (True, 0)


def test_no_limit() -> None:
    """Without a number nobody waits."""

    async def visit() -> None:
        turnstile = Turnstile()
        for _ in range(1000):
            await turnstile.enter("a")

    asyncio.run(visit())


def test_granted_and_cancelled_at_once() -> None:
    """A place that is given to somebody who has just given up goes to the next one."""

    async def visit() -> None:
        turnstile = Turnstile(1)
        await turnstile.enter("a")
        first, second = (asyncio.create_task(turnstile.enter(key)) for key in "bc")
        await asyncio.sleep(0)
        turnstile.leave()
        first.cancel()
        await asyncio.wait_for(second, 1)

    asyncio.run(visit())
