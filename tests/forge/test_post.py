"""One comment, kept up to date, on a server that behaves like the real ones."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_wfbench.forge.api import Forge, ForgeError, NotAllowed, mark_of
from pytest_wfbench.forge.post import Posted, post
from tests.forge.standin import StandIn


def body(order: int, text: str = "fine", key: str = "smoke") -> str:
    return f"<!-- pytest-wfbench key={key} order={order} -->\n### {text}\n"


def send(forge: Forge, order: int, text: str = "fine", key: str = "smoke") -> Posted:
    return post(forge, lambda size: body(order, text, key)[:size])


class TestMark:
    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("<!-- pytest-wfbench key=a-b order=12 -->", ("a-b", 12)),
            ("<!-- pytest-wfbench key=a-b order=12 -->\r", ("a-b", 12)),
            (" <!-- pytest-wfbench key=a order=1 -->", None),
            ("<!-- pytest-wfbench key=a order=x -->", None),
            ("text", None),
            ("", None),
        ],
    )
    def test_first_line(self, line: str, expected: tuple[str, int] | None) -> None:
        """A comment is known by its first line alone."""
        assert mark_of(line + "\nmore") == expected


class TestPost:
    def test_new(self, forge: Forge, standin: StandIn) -> None:
        """Where there is no comment of the key, one is made."""
        standin.add("hello", author="someone")
        standin.add(body(99, key="other"))
        assert send(forge, 1).what == "posted"
        assert [entry["body"] for entry in standin.comments][2:] == [body(1)]

    def test_update_in_place(self, forge: Forge, standin: StandIn) -> None:
        """A later run updates the comment that is there; the same text is not written again."""
        assert send(forge, 1).what == "posted"
        assert send(forge, 2, "better").what == "updated"
        assert [entry["body"] for entry in standin.comments] == [body(2, "better")]
        written = len(standin.writes)
        assert send(forge, 2, "better").what == "unchanged"
        assert len(standin.writes) == written

    def test_older_run_last(self, forge: Forge, standin: StandIn) -> None:
        """A run of lower order that finishes last writes nothing."""
        send(forge, 5, "new")
        written = len(standin.writes)
        assert send(forge, 4, "old").what == "newer"
        assert len(standin.writes) == written
        assert standin.comments[0]["body"] == body(5, "new")

    def test_all_pages(self, forge: Forge, standin: StandIn) -> None:
        """It is found on whichever page it is."""
        for number in range(70):
            standin.add(f"comment {number}", author="someone")
        send(forge, 1)
        assert send(forge, 2, "later").what == "updated"
        assert len(standin.comments) == 71

    def test_somebody_elses(self, forge: Forge, standin: StandIn) -> None:
        """A comment with our marker by another author is not ours."""
        standin.add(body(9, "forged"), author="mallory")
        assert send(forge, 1).what == "posted"
        assert standin.comments[0]["body"] == body(9, "forged")

    def test_edited(self, forge: Forge, standin: StandIn) -> None:
        """A comment that somebody edited is written anew, line ends aside."""
        send(forge, 1)
        standin.comments[0]["body"] = body(1).replace("\n", "\r\n")
        assert send(forge, 1).what == "unchanged"
        standin.comments[0]["body"] = body(1) + "and I say"
        assert send(forge, 1).what == "updated"
        assert standin.comments[0]["body"] == body(1)

    def test_too_long(self, forge: Forge, standin: StandIn) -> None:
        """What the forge finds too long is written shorter."""
        standin.limit = 12_000
        done = post(forge, lambda size: body(1, "x" * (size - 80)))
        assert done.what == "posted"
        assert len(standin.comments[0]["body"]) <= 10_000
        standin.limit = 10
        with pytest.raises(ForgeError, match="in no size"):
            send(forge, 2)

    def test_may_not_write(self, forge: Forge, standin: StandIn) -> None:
        """A token that may not write is told from a broken forge."""
        standin.refuse = 403
        with pytest.raises(NotAllowed, match="may not write"):
            send(forge, 1)

    def test_stumbles(self, forge: Forge, standin: StandIn) -> None:
        """A forge that answers 503 for a while is asked again, but not for ever."""
        standin.stumbles = 3
        assert send(forge, 1).what == "posted"
        standin.stumbles = 1000
        with pytest.raises(ForgeError, match="does not answer"):
            send(forge, 2)

    @pytest.mark.parametrize("orders", [(1, 2), (2, 1)])
    def test_two_at_once(self, forge: Forge, standin: StandIn, orders: tuple[int, int]) -> None:
        """Two runs that both find no comment leave one, the later run's."""
        both = threading.Barrier(2, timeout=10)

        def before(method: str, path: str) -> None:
            if method == "POST":
                both.wait()

        standin.before = before
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda order: send(forge, order, f"run {order}"), orders))
        assert [entry["body"] for entry in standin.comments] == [body(2, "run 2")]

    def test_overwritten_meanwhile(self, forge: Forge, standin: StandIn) -> None:
        """An older run that slips in between is overwritten again."""
        send(forge, 1)
        slipped = [False]

        def before(method: str, path: str) -> None:
            if method == "GET" and standin.writes[-1][0] in ("PATCH", "PUT") and not slipped[0]:
                slipped[0] = True
                standin.comments[0]["body"] = body(2, "older")

        standin.before = before
        assert send(forge, 3, "newest").what == "updated"
        assert slipped[0]
        assert standin.comments[0]["body"] == body(3, "newest")
