"""Amounts of money: a decimal number in whole minor units of one currency.

A :class:`Money` never carries a fraction of a minor unit. Whatever computes an amount (a tax, a
discount, a conversion) hands the exact decimal to :class:`Money`, which rounds it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from functools import total_ordering

from ledger.errors import CurrencyMismatchError, UnknownCurrencyError


@dataclass(frozen=True)
class Currency:
    """An ISO 4217 currency and the number of digits of its minor unit."""

    code: str
    digits: int

    @property
    def unit(self) -> Decimal:
        """The smallest amount, e.g. ``0.01`` for EUR and ``1`` for JPY."""
        return Decimal(1).scaleb(-self.digits)

    def __str__(self) -> str:
        return self.code


CURRENCIES: dict[str, Currency] = {
    code: Currency(code, digits)
    for code, digits in (
        ("EUR", 2),
        ("USD", 2),
        ("GBP", 2),
        ("CHF", 2),
        ("SEK", 2),
        ("JPY", 0),
        ("KWD", 3),
    )
}


def currency(code: str) -> Currency:
    """The currency of an ISO code, in any case."""
    try:
        return CURRENCIES[code.upper()]
    except KeyError:
        raise UnknownCurrencyError(f"unknown currency {code!r}") from None


def quantize(amount: Decimal, unit_of: Currency) -> Decimal:
    """Round an exact amount to whole minor units of a currency."""
    rounded = amount.quantize(unit_of.unit, rounding=ROUND_HALF_UP)
    return rounded if rounded else abs(rounded)  # no negative zero


@total_ordering
@dataclass(frozen=True)
class Money:
    """An amount in a currency. Arithmetic between currencies is an error."""

    amount: Decimal
    currency: Currency

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", quantize(self.amount, self.currency))

    @classmethod
    def of(cls, amount: str | int | Decimal, code: str) -> Money:
        """Shorthand: ``Money.of("12.50", "EUR")``."""
        return cls(Decimal(amount), currency(code))

    @classmethod
    def zero(cls, unit_of: Currency) -> Money:
        return cls(Decimal(0), unit_of)

    @classmethod
    def sum(cls, amounts: Iterable[Money], unit_of: Currency) -> Money:
        """The sum of amounts of one currency; zero if there are none."""
        total = cls.zero(unit_of)
        for amount in amounts:
            total += amount
        return total

    def _same(self, other: Money) -> Decimal:
        if self.currency != other.currency:
            raise CurrencyMismatchError(f"{self.currency} and {other.currency} do not mix")
        return other.amount

    def __add__(self, other: Money) -> Money:
        return Money(self.amount + self._same(other), self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money(self.amount - self._same(other), self.currency)

    def __neg__(self) -> Money:
        return Money(-self.amount, self.currency)

    def __mul__(self, factor: Decimal | int) -> Money:
        return Money(self.amount * factor, self.currency)

    __rmul__ = __mul__

    def __lt__(self, other: Money) -> bool:
        return self.amount < self._same(other)

    def __bool__(self) -> bool:
        return bool(self.amount)

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"

    def allocate(self, weights: Sequence[Decimal]) -> list[Money]:
        """Split the amount in proportion to ``weights``; the parts add up to it exactly.

        Minor units that are left over go to the largest remainders, the first of equals first.
        """
        whole = sum(weights, Decimal(0))
        if whole <= 0 or min(weights) < 0:
            raise ValueError("weights must not be negative, and not all zero")
        units = int(self.amount / self.currency.unit)
        exact = [units * weight / whole for weight in weights]
        floors = [int(share.to_integral_value(rounding=ROUND_FLOOR)) for share in exact]
        by_remainder = sorted(range(len(exact)), key=lambda i: (floors[i] - exact[i], i))
        for i in by_remainder[: units - sum(floors)]:
            floors[i] += 1
        return [Money(count * self.currency.unit, self.currency) for count in floors]
