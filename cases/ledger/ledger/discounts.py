"""Reductions: on an invoice line, and for paying early."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from ledger.errors import ValidationError
from ledger.money import Money


def percent_off(amount: Money, percent: Decimal) -> Money:
    """What is left of an amount after a discount of so many percent."""
    if not 0 <= percent <= 100:
        raise ValidationError(f"a discount of {percent} % is not between 0 and 100")
    return amount - amount * (percent / 100)


@dataclass(frozen=True)
class EarlyPayment:
    """A discount for paying within some days of the invoice, e.g. 2 % within 10 days."""

    percent: Decimal
    days: int

    def due(self, open_amount: Money, invoiced_on: date, paid_on: date) -> Money:
        """What settles the open amount on a day."""
        if paid_on > invoiced_on + timedelta(days=self.days):
            return open_amount
        return percent_off(open_amount, self.percent)
