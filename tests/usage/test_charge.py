"""What budgets are charged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.usage.charge import BYTES_PER_TOKEN, DEFAULT_OUTPUT, Answering, charge, is_priced
from pytest_wfbench.usage.prices import PriceTable

from .conftest import MakeEvent

CLAUDE = {
    "input_cost_per_token": 2.0,
    "output_cost_per_token": 10.0,
    "cache_read_input_token_cost": 0.5,
    "cache_creation_input_token_cost": 3.0,
    "max_output_tokens": 100,
}
TABLE = {"claude": CLAUDE, "dear": {**CLAUDE, "output_cost_per_token": 50.0}, "half": {"input_cost_per_token": 1.0}}
EXPECTED = (Answering("anthropic", "claude"),)
ANTHROPIC = {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}
CHAT = {"prompt_tokens": 16, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}}
KNOWN = 10 * 2.0 + 4 * 0.5 + 2 * 3.0


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(TABLE))
    return PriceTable.load(path)


def cut(event: MakeEvent, native: dict[str, Any] | None, **fields: Any) -> Any:
    known = {"status": "cut", "answered_model": "claude", "provider": "anthropic", "wire": "anthropic-messages"}
    return event(native_usage=native, **{**known, **fields})


class TestCharge:
    def test_known(self, prices: PriceTable, event: MakeEvent) -> None:
        """A cost that is known is charged as it is, and a token count is free."""
        told = cut(event, {**ANTHROPIC, "output_tokens": 3}, status="success")
        assert charge(told, prices) == (KNOWN + 30.0, False)
        assert charge(told.model_copy(update={"kind": "count"}), prices) == (0.0, False)

    @pytest.mark.parametrize(("asked", "tokens"), [(7, 7), (100_000, 100), (None, 100)])
    def test_output_unknown(self, prices: PriceTable, event: MakeEvent, asked: int | None, tokens: int) -> None:
        """Output that was not told is charged at the request's bound, and at no more than the model can say."""
        told = cut(event, ANTHROPIC, max_output=asked)
        assert charge(told, prices) == (KNOWN + 10.0 * tokens, True)

    def test_all_unknown(self, prices: PriceTable, event: MakeEvent) -> None:
        """Where nothing was told input is charged by the size of the request; by whoever was to answer."""
        told = cut(event, None, answered_model=None, max_output=7, body_bytes=40 * BYTES_PER_TOKEN)
        assert charge(told, prices, EXPECTED) == (40 * 2.0 + 70.0, True)
        dearest = (*EXPECTED, Answering("anthropic", "dear"))
        assert charge(told, prices, dearest) == (40 * 2.0 + 350.0, True)

    def test_an_answer_of_a_model_without_a_price(self, prices: PriceTable, event: MakeEvent) -> None:
        """A model that has no price answers at that of the one that was asked for."""
        told = cut(event, {**ANTHROPIC, "output_tokens": 3}, status="success", answered_model="stranger")
        assert charge(told, prices, EXPECTED) == (KNOWN + 30.0, True)

    def test_other_wires(self, prices: PriceTable, event: MakeEvent) -> None:
        """The bound is charged in every wire format, and where the account contradicts itself."""
        fields = {"wire": "openai-chat", "max_output": 7, "body_bytes": 0}
        known = 12 * 2.0 + 4 * 0.5 + 2 * 1.0
        assert charge(cut(event, CHAT, **fields), prices) == (known + 70.0, True)
        absurd = {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}}
        usd, assumed = charge(cut(event, absurd, **fields), prices)
        assert (usd >= 70.0, assumed) == (True, True)

    def test_a_silent_table(self, prices: PriceTable, event: MakeEvent) -> None:
        """Where neither request nor table says how long an answer may get, it is a long one."""
        bare = PriceTable("x", "", "", {"claude": {k: v for k, v in CLAUDE.items() if k != "max_output_tokens"}})
        assert charge(cut(event, ANTHROPIC), bare) == (KNOWN + 10.0 * DEFAULT_OUTPUT, True)

    def test_priced(self, prices: PriceTable) -> None:
        """A model is priced when what is asked and what is answered both are."""
        found = [is_priced(prices, Answering("anthropic", name)) for name in ("claude", "half", "stranger", None)]
        assert found == [True, False, False, False]
