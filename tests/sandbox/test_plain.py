"""Records that travel into a sandbox."""

from __future__ import annotations

import marshal
from typing import Any

import pytest

from pytest_wfbench.sandbox.plain import Record


class Parcel(Record):
    """Two fields, one of which may be left out."""

    weight: int
    words: tuple[str, ...] = ()


class TestRecord:
    @pytest.mark.parametrize(
        "made", [Parcel(3, ("a",)), Parcel(3, words=("a",)), Parcel(words=("a",), weight=3)], ids=range(3)
    )
    def test_there_and_back(self, made: Parcel) -> None:
        """By place or by name, it is the same, also after its journey."""
        come = Parcel(*marshal.loads(marshal.dumps(made.plain())))
        assert (come.weight, come.words) == (3, ("a",))

    def test_default(self) -> None:
        """A field that is left out has its default, and travels with it."""
        assert Parcel(3).plain() == (3, ())

    @pytest.mark.parametrize(
        ("values", "named"),
        [((), {}), ((), {"words": ()}), ((1, (), 2), {}), ((1,), {"weight": 2}), ((1,), {"height": 2})],
        ids=["nothing", "lacking", "too many", "twice", "unknown"],
    )
    def test_refused(self, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        """What does not fit the fields is an error, and no half record."""
        with pytest.raises(TypeError, match=r"Parcel (takes|lacks) "):
            Parcel(*values, **named)
