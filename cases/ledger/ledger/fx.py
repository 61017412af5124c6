"""Exchange rates against the base currency of a book."""

from __future__ import annotations

from bisect import bisect_right, insort
from datetime import date
from decimal import Decimal

from ledger.errors import MissingRateError, ValidationError
from ledger.money import Currency, Money


class RateTable:
    """What one unit of a currency is worth in the base currency, from a day on."""

    def __init__(self, base: Currency) -> None:
        self.base = base
        self._rates: dict[Currency, list[tuple[date, Decimal]]] = {}

    def add(self, unit_of: Currency, day: date, value: Decimal) -> None:
        """Record a rate; a later one for the same day replaces it."""
        if unit_of == self.base:
            raise ValidationError(f"{unit_of} is the base currency, its rate is always 1")
        if value <= 0:
            raise ValidationError(f"a rate must be positive, not {value}")
        known = self._rates.setdefault(unit_of, [])
        known[:] = [rate for rate in known if rate[0] != day]
        insort(known, (day, value))

    def value(self, unit_of: Currency, day: date) -> Decimal:
        """The newest rate published on or before a day."""
        if unit_of == self.base:
            return Decimal(1)
        known = self._rates.get(unit_of, [])
        position = bisect_right(known, day, key=lambda rate: rate[0])
        if position == 0:
            raise MissingRateError(f"no rate for {unit_of} on or before {day}")
        return known[position - 1][1]

    def convert(self, amount: Money, target: Currency, day: date) -> Money:
        """An amount in another currency at the rates of a day, through the base currency."""
        if amount.currency == target:
            return amount
        return Money(
            amount.amount * self.value(amount.currency, day) / self.value(target, day), target
        )

    def rows(self) -> list[tuple[Currency, date, Decimal]]:
        """All rates, by currency and day."""
        return [
            (unit_of, day, value)
            for unit_of in sorted(self._rates, key=str)
            for day, value in self._rates[unit_of]
        ]
