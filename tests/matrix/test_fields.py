"""Durations, sizes and paths."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from pytest_wfbench.matrix.fields import BY_HAND, MAX_SECONDS, MAX_SIZE, InsidePath, Seconds, Size, Slug

seconds: TypeAdapter[float] = TypeAdapter(Seconds)
size: TypeAdapter[int] = TypeAdapter(Size)
path: TypeAdapter[str] = TypeAdapter(InsidePath)
slug: TypeAdapter[str] = TypeAdapter(Slug)


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "value"), [("90s", 90.0), ("20m", 1200.0), ("2h", 7200.0), ("1.5h", 5400.0), ("0.5s", 0.5)]
    )
    def test_read(self, text: str, value: float) -> None:
        """A duration is a number and a unit."""
        assert seconds.validate_python(text, context=BY_HAND) == value

    @given(st.floats(0.001, 3e6), st.sampled_from("smh"))
    def test_unit(self, number: float, unit: str) -> None:
        """An hour is sixty minutes, a minute sixty seconds; what is longer than allowed is refused."""
        text = f"{number:.3f}"
        expected = float(text) * {"s": 1, "m": 60, "h": 3600}[unit]
        if 0 < expected <= MAX_SECONDS:
            assert seconds.validate_python(text + unit) == pytest.approx(expected)
        else:
            with pytest.raises(ValidationError):
                seconds.validate_python(text + unit)

    @given(
        st.text(max_size=8)
        | st.from_regex(r"[0-9.]*[smh]?", fullmatch=True)
        | st.integers()
        | st.none()
        | st.booleans()
    )
    def test_anything(self, value: Any) -> None:
        """Whatever is written is a finite positive number of seconds, or refused."""
        try:
            found = seconds.validate_python(value, context=BY_HAND)
        except ValidationError:
            return
        assert isinstance(value, str)
        assert 0 < found <= MAX_SECONDS

    @pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0])
    def test_impossible_numbers(self, value: float) -> None:
        """A number that is no length of time is refused from whoever gives it."""
        with pytest.raises(ValidationError):
            seconds.validate_python(value)


class TestSizes:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("512MiB", 512 << 20), ("8GiB", 8 << 30), ("1.5KiB", 1536), ("7B", 7), (4096, 4096), ("1048576GiB", MAX_SIZE)],
    )
    def test_read(self, text: Any, value: int) -> None:
        """A size is a number and a binary unit, or a number of bytes."""
        assert size.validate_python(text) == value

    @given(st.text(max_size=8) | st.from_regex(r"[0-9.]*(B|KiB|GiB|MB)?", fullmatch=True) | st.integers() | st.floats())
    def test_anything(self, value: Any) -> None:
        """Whatever is written is a positive number of bytes, or refused."""
        try:
            found = size.validate_python(value)
        except ValidationError:
            return
        assert type(found) is int
        assert 0 < found <= MAX_SIZE

    @pytest.mark.parametrize(
        "value", [True, 0, -1, "0B", "0.1B", "8GB", "8 GiB", "1e3B", MAX_SIZE + 1, "9" * 400 + "GiB"]
    )
    def test_refused(self, value: Any) -> None:
        """Decimal units, blanks, truths and nothing are refused."""
        with pytest.raises(ValidationError):
            size.validate_python(value)


class TestPathsAndSlugs:
    @example("a /")
    @example("./ a")
    @example("./~a")
    @given(st.text(max_size=12) | st.text("./~a \n", max_size=12))
    def test_path_stays_inside(self, value: str) -> None:
        """What is accepted is relative, normal, printable and climbs nowhere."""
        try:
            found = path.validate_python(value)
        except ValidationError:
            return
        parts = found.split("/")
        assert all(part not in ("", ".", "..") for part in parts)
        assert not found.startswith("~")
        assert found.isprintable()
        assert path.validate_python(found) == found

    @given(st.text(max_size=12) | st.text("ab0_.-A\n\u0661\u017f", max_size=4))
    def test_slug(self, value: str) -> None:
        """A slug is plain lower-case ASCII that starts with a letter or digit."""
        try:
            slug.validate_python(value)
        except ValidationError:
            return
        assert set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-")
        assert value[0] not in "_.-"
