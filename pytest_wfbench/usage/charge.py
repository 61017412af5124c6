"""What a request is charged to a budget: its cost, and where that is unknown the most it can have been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.evidence.row import Usage
from pytest_wfbench.usage.cell import request_usage
from pytest_wfbench.usage.normalise import UsageError
from pytest_wfbench.usage.prices import PriceTable
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES, UNSEEN

# What one token of a request is at least, so that input nobody counted is not taken for free.
BYTES_PER_TOKEN = 4
# Where neither the request nor the table says how long an answer may get.
DEFAULT_OUTPUT = 8192
OUTPUT_FIELDS: Mapping[str, str] = {
    ANTHROPIC: "output_tokens", RESPONSES: "output_tokens", CHAT: "completion_tokens", UNSEEN: "completion_tokens",
}  # fmt: skip
UNKNOWN = Usage()


class Answering(NamedTuple):
    """Who may answer a request."""

    provider: str | None
    model: str | None


class Charge(NamedTuple):
    """USD, and whether they are assumed rather than known."""

    usd: float
    assumed: bool = False


def charge(event: Event, prices: PriceTable, expected: Iterable[Answering] = ()) -> Charge:
    """Return what a budget is charged for a request.

    Args:
        expected: who may have answered, where the answer does not say, or names a model that has no price; the
            dearest of them is taken.
    """
    if event.kind == "count":
        return Charge(0.0)
    if (known := _known(prices, event)) is not None:
        return Charge(known)
    said = Answering(event.provider, event.answered_model)
    candidates = [said] if is_priced(prices, said) else list(expected)
    return Charge(max((_most(prices, event, who) for who in candidates), default=0.0), assumed=True)


def is_priced(prices: PriceTable, who: Answering) -> bool:
    """Whether the table has both prices that every answer is billed by."""
    price = prices.price(who.model, who.provider)
    return price is not None and price.input is not None and price.output is not None


def _known(prices: PriceTable, event: Event) -> float | None:
    try:
        return prices.cost(event)
    except UsageError:
        return None


def _usage(event: Event) -> Usage:
    try:
        return request_usage(event)
    except UsageError:
        return UNKNOWN


def _most(prices: PriceTable, event: Event, who: Answering) -> float:
    """Return the cost with what is known of the usage, and the most that is possible for the rest."""
    usage = _usage(event)
    output = usage.output if usage.output is not None else _most_output(prices, event, who)
    told = {**(event.native_usage or {}), OUTPUT_FIELDS[event.wire]: output}
    whole = event.model_copy(update={"provider": who.provider, "answered_model": who.model, "native_usage": told})
    if (cost := _known(prices, whole)) is not None:
        return cost
    price = prices.price(who.model, who.provider)
    if price is None:
        return 0.0
    return _input(event, usage) * (price.input or 0.0) + output * (price.output or 0.0)


def _input(event: Event, usage: Usage) -> int:
    if usage.total_input is not None:
        return usage.total_input
    counted = sum(part or 0 for part in (usage.ordinary_input, usage.cache_read_input, usage.cache_write_input))
    return max(counted, (event.body_bytes or 0) // BYTES_PER_TOKEN)


def _most_output(prices: PriceTable, event: Event, who: Answering) -> int:
    """A client may ask for more than the model can say: that is not charged to anybody."""
    bounds = (event.max_output, prices.most_output(who.model, who.provider))
    return min((bound for bound in bounds if bound is not None), default=DEFAULT_OUTPUT)
