"""Dollars."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.usage.prices import BadPrices, PriceTable

from .conftest import MakeEvent

TABLE = {
    "claude": {
        "input_cost_per_token": 2.0,
        "output_cost_per_token": 10.0,
        "cache_read_input_token_cost": 0.5,
        "cache_creation_input_token_cost": 3.0,
        "cache_creation_input_token_cost_above_1hr": 4.0,
    },
    "gpt": {
        "input_cost_per_token": 2.0,
        "output_cost_per_token": 10.0,
        "cache_read_input_token_cost": 0.5,
        "cache_creation_input_token_cost": 3.0,
    },
    "plain": {"input_cost_per_token": 2.0, "output_cost_per_token": 10.0},
    "openrouter/gpt": {"input_cost_per_token": 1.0, "output_cost_per_token": 1.0},
    "silent": {"max_tokens": 5},
}


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(TABLE))
    return PriceTable.load(path)


def anthropic(**fields: Any) -> dict[str, Any]:
    native = {
        "input_tokens": 100,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 20,
        "output_tokens": 10,
    }
    return {"answered_model": "claude", "native_usage": native | fields}


def openai(model: str = "gpt", wire: str = "openai-chat", **details: Any) -> dict[str, Any]:
    native = {"prompt_tokens": 150, "completion_tokens": 10, "prompt_tokens_details": details}
    return {"answered_model": model, "provider": "openai", "wire": wire, "native_usage": native}


class TestAnthropic:
    def test_each_part_at_its_price(self, event: MakeEvent, prices: PriceTable) -> None:
        """Ordinary, read, written and output tokens each have their price."""
        assert prices.cost(event(**anthropic())) == 100 * 2 + 30 * 0.5 + 20 * 3 + 10 * 10

    def test_writes_by_their_life(self, event: MakeEvent, prices: PriceTable) -> None:
        """Where the writes are split into five minutes and an hour, each has its price."""
        split = {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15}
        cost = prices.cost(event(**anthropic(cache_creation=split)))
        assert cost == 100 * 2 + 30 * 0.5 + 5 * 3 + 15 * 4 + 10 * 10

    def test_an_unknown_part_is_unknown(self, event: MakeEvent, prices: PriceTable) -> None:
        """A billed part that is missing makes the cost unknown."""
        assert prices.cost(event(**anthropic(output_tokens=None))) is None

    def test_writes_without_a_price(self, event: MakeEvent, prices: PriceTable) -> None:
        """Written tokens without a price are unknown, none cost nothing; cached ones fall back to the input price."""
        assert prices.cost(event(**anthropic() | {"answered_model": "plain"})) is None
        cost = prices.cost(event(**anthropic(cache_creation_input_tokens=0) | {"answered_model": "plain"}))
        assert cost == (100 + 30) * 2 + 10 * 10


class TestOpenAI:
    def test_cached_and_written(self, event: MakeEvent, prices: PriceTable) -> None:
        """Read tokens have their price, written ones cost the premium over the input's."""
        cost = prices.cost(event(**openai(cached_tokens=30, cache_write_tokens=20)))
        assert cost == 120 * 2 + 30 * 0.5 + 20 * (3 - 2) + 10 * 10

    def test_an_absent_write_is_not_billed(self, event: MakeEvent, prices: PriceTable) -> None:
        """Without a word about writes there is no premium."""
        assert prices.cost(event(**openai(cached_tokens=30))) == 120 * 2 + 30 * 0.5 + 10 * 10

    def test_an_unknown_read_is_unknown(self, event: MakeEvent, prices: PriceTable) -> None:
        """How much was cached must be known where it has its own price."""
        assert prices.cost(event(**openai())) is None
        assert prices.cost(event(**openai("plain"))) == 150 * 2 + 10 * 10

    def test_the_providers_own_entry_wins(self, event: MakeEvent, prices: PriceTable) -> None:
        """A model sold by several has the price of the one who answered."""
        assert prices.cost(event(**openai(cached_tokens=0) | {"provider": "openrouter"})) == 160


class TestUnknown:
    def test_a_model_outside_the_table(self, event: MakeEvent, prices: PriceTable) -> None:
        """A model that the table does not have costs unknown, never 0."""
        for model in ("other", "silent", None):
            assert prices.cost(event(**anthropic() | {"answered_model": model})) is None

    def test_zero_tokens_cost_zero(self, event: MakeEvent, prices: PriceTable) -> None:
        """Zero tokens cost 0 whatever the price; so does a failure before any output."""
        nothing = dict.fromkeys(anthropic()["native_usage"], 0)
        assert prices.cost(event(answered_model="other", native_usage=nothing)) == 0
        failed = event(status="failure", ttft_ms=None, native_usage=None, answered_model=None)
        assert prices.cost(failed) == 0

    def test_a_cell(self, event: MakeEvent, prices: PriceTable) -> None:
        """A cell costs the sum, unknown if any part is; token counts cost nothing."""
        one = event(**anthropic())
        count = event(kind="count", native_usage=None)
        assert prices.cell_cost([one, one, count]) == 2 * (prices.cost(one) or 0)
        assert prices.cell_cost([]) == 0
        assert prices.cell_cost([one, event(**anthropic(output_tokens=None))]) is None
        assert prices.cell_cost([one], open_calls=1) is None


class TestTable:
    def test_the_bundled_map(self, event: MakeEvent) -> None:
        """LiteLLM's own map is read as data: dollars per token, version and digest in its label."""
        table = PriceTable.load()
        assert table.label.startswith("litellm-1.108.7:sha256:")
        cost = table.cost(event(answered_model="claude-sonnet-4-5"))
        assert cost == pytest.approx(100 * 3e-6 + 30 * 3e-7 + 20 * 3.75e-6 + 10 * 1.5e-5)

    def test_litellm_is_not_imported(self) -> None:
        """Reading the map does not import LiteLLM."""
        code = (
            "import sys; from pytest_wfbench.usage.prices import PriceTable; PriceTable.load();"
            "print('litellm' in sys.modules)"
        )
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == "False"

    @pytest.mark.parametrize("text", ["", "[]", '{"m": 1}'])
    def test_a_faulty_file(self, tmp_path: Path, text: str) -> None:
        """A file that is no price table is named."""
        path = tmp_path / "prices.json"
        path.write_text(text)
        with pytest.raises(BadPrices, match=r"prices\.json"):
            PriceTable.load(path)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """A missing file is named."""
        with pytest.raises(BadPrices, match="absent"):
            PriceTable.load(tmp_path / "absent.json")
