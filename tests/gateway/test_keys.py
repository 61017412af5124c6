"""Keys that are valid on one door alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.gateway.keys import Claim, mint, verify

CLAIM = Claim("cell", "work", "door", ("a", "b"), 1000)


class TestKeys:
    def test_its_own_key(self) -> None:
        """A key is valid until its claim expires."""
        key = mint(b"s", CLAIM)
        assert verify(b"s", CLAIM, key, 999.9)
        assert not verify(b"s", CLAIM, key, 1000)

    @pytest.mark.parametrize(
        "change",
        [{"cell_id": "x"}, {"session": "x"}, {"door": "x"}, {"models": ("a",)}, {"models": ("ab",)}, {"expires": 2000}],
    )
    def test_any_other_claim(self, change: dict[str, object]) -> None:
        """A key is not valid for a claim that differs in anything."""
        assert not verify(b"s", replace(CLAIM, **change), mint(b"s", CLAIM), 0)  # type: ignore[arg-type]

    @given(st.text())
    def test_a_guess(self, guess: str) -> None:
        """No text is a key by chance, nor does any raise."""
        assert not verify(b"s", CLAIM, guess, 0)
        assert not verify(b"other", CLAIM, mint(b"s", CLAIM), 0)
