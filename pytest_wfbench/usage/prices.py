"""Dollars, by the answering model, from a table that is read as data."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.usage.cell import adds_nothing, request_usage
from pytest_wfbench.wires import ANTHROPIC

BUNDLED = "model_prices_and_context_window_backup.json"
DISTRIBUTION = "litellm"


class BadPrices(ValueError):
    """A price file that cannot be read; the message names it and the remedy."""


@dataclass(frozen=True)
class Price:
    """USD per token of one model; none where the table is silent."""

    input: float | None
    output: float | None
    read: float | None
    write: float | None
    write_hour: float | None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)


def _price(entry: Mapping[str, Any]) -> Price:
    base = _number(entry.get("input_cost_per_token"))
    read = _number(entry.get("cache_read_input_token_cost"))
    return Price(
        input=base,
        output=_number(entry.get("output_cost_per_token")),
        read=base if read is None else read,
        write=_number(entry.get("cache_creation_input_token_cost")),
        write_hour=_number(entry.get("cache_creation_input_token_cost_above_1hr")),
    )


def _term(tokens: int | None, price: float | None) -> float | None:
    if tokens == 0:
        return 0.0
    return None if tokens is None or price is None else tokens * price


def _total(*terms: float | None) -> float | None:
    known = [term for term in terms if term is not None]
    return math.fsum(known) if len(known) == len(terms) else None


def _anthropic_write(usage: Usage, native: Mapping[str, Any], price: Price) -> float | None:
    split = native.get("cache_creation")
    if not isinstance(split, dict):
        return _term(usage.cache_write_input, price.write)
    minutes, hour = split.get("ephemeral_5m_input_tokens"), split.get("ephemeral_1h_input_tokens")
    if not (type(minutes) is int and type(hour) is int and minutes + hour == usage.cache_write_input):
        return _term(usage.cache_write_input, price.write)
    return _total(_term(minutes, price.write), _term(hour, price.write_hour))


def _anthropic_cost(usage: Usage, native: Mapping[str, Any], price: Price) -> float | None:
    return _total(
        _term(usage.ordinary_input, price.input),
        _term(usage.cache_read_input, price.read),
        _anthropic_write(usage, native, price),
        _term(usage.output, price.output),
    )


def _openai_cost(usage: Usage, price: Price) -> float | None:
    read = usage.cache_read_input
    if read is None and price.read == price.input:
        read = 0  # Both parts have one price, so the split does not matter.
    fresh = None if usage.total_input is None or read is None else usage.total_input - read
    premium = 0.0
    if usage.cache_write_input and price.write is not None and price.input is not None:
        premium = usage.cache_write_input * (price.write - price.input)
    return _total(_term(fresh, price.input), _term(read, price.read), premium, _term(usage.output, price.output))


@dataclass(frozen=True)
class PriceTable:
    """Prices by model: ``name`` and ``version`` say whose they are, ``digest`` (``sha256:<hex>``) which."""

    name: str
    version: str
    digest: str
    models: Mapping[str, Mapping[str, Any]] = field(repr=False)

    @property
    def label(self) -> str:
        """What a row says of it: ``litellm-1.108.7:sha256:<hex>``."""
        return f"{self.name}-{self.version}:{self.digest}" if self.version else f"{self.name}:{self.digest}"

    @classmethod
    def load(cls, path: Path | None = None) -> PriceTable:
        """Read LiteLLM's bundled map, without importing LiteLLM, or a file of the same schema.

        Raises:
            BadPrices: when there is no such file, or it is no JSON object of JSON objects.
        """
        source = path if path is not None else _bundled()
        try:
            data = source.read_bytes()
            document = json.loads(data)
        except (OSError, ValueError) as error:
            raise BadPrices(f"{source}: cannot be read as a price table: {error}") from None
        if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
            raise BadPrices(f"{source}: not a price table: expected an object with one object a model")
        name, version = (path.stem, "") if path else (DISTRIBUTION, importlib.metadata.version(DISTRIBUTION))
        return cls(name, version, "sha256:" + hashlib.sha256(data).hexdigest(), document)

    def price(self, model: str | None, provider: str | None = None) -> Price | None:
        """Return the price of an answering model, or none if the table does not have it."""
        entry = self._entry(model, provider)
        return None if entry is None else _price(entry)

    def most_output(self, model: str | None, provider: str | None = None) -> int | None:
        """Return how many tokens a model answers at most, or none if the table does not say."""
        entry = self._entry(model, provider) or {}
        found = (entry.get(name) for name in ("max_output_tokens", "max_tokens"))
        return next((most for most in found if type(most) is int and most > 0), None)

    def _entry(self, model: str | None, provider: str | None) -> Mapping[str, Any] | None:
        keys = (f"{provider}/{model}", model) if model else ()
        return next((self.models[key] for key in keys if key in self.models), None)

    def cost(self, event: Event) -> float | None:
        """Return the USD of one request; none where a billed term or its price is unknown. Raises UsageError."""
        if adds_nothing(event):
            return 0.0
        usage = request_usage(event)
        if not any(value for _, value in usage) and usage.total_input == 0 and usage.output == 0:
            return 0.0
        price = self.price(event.answered_model, event.provider)
        if price is None:
            return None
        if event.wire == ANTHROPIC:
            return _anthropic_cost(usage, event.native_usage or {}, price)
        return _openai_cost(usage, price)

    def cell_cost(self, events: Iterable[Event], open_calls: int = 0) -> float | None:
        """Return the USD of a cell's requests, token counts aside; none where any is unknown. Raises UsageError."""
        costs = [self.cost(event) for event in events if event.kind == "generate"]
        return None if open_calls else _total(*costs)


def _bundled() -> Path:
    spec = importlib.util.find_spec(DISTRIBUTION)
    if spec is None or spec.origin is None:
        raise BadPrices("LiteLLM is not installed, so there is no bundled price table: name one with --wfbench-prices")
    return Path(spec.origin).parent / BUNDLED
