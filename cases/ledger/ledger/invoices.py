"""Invoices to customers and the payments on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from ledger.discounts import EarlyPayment, percent_off
from ledger.errors import ValidationError
from ledger.money import Currency, Money
from ledger.tax import TAX_CODES, TaxedAmount, tax_code


@dataclass(frozen=True)
class InvoiceLine:
    """A quantity of something at a net unit price, less a discount in percent."""

    description: str
    quantity: Decimal
    unit_price: Money
    tax_code: str
    discount: Decimal = Decimal(0)

    @property
    def net(self) -> Money:
        return percent_off(self.unit_price * self.quantity, self.discount)


@dataclass(frozen=True)
class Payment:
    date: date
    amount: Money


@dataclass
class Invoice:
    """A numbered claim on a customer, in one currency."""

    number: str
    customer: str
    date: date
    currency: Currency
    lines: tuple[InvoiceLine, ...]
    terms: int = 30
    early_payment: EarlyPayment | None = None
    payments: list[Payment] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.lines:
            raise ValidationError(f"invoice {self.number} has no lines")
        if self.terms < 0:
            raise ValidationError(f"invoice {self.number}: terms of {self.terms} days")
        if self.total <= Money.zero(self.currency):
            raise ValidationError(f"invoice {self.number} claims nothing: {self.total}")

    @property
    def due(self) -> date:
        return self.date + timedelta(days=self.terms)

    @property
    def breakdown(self) -> list[TaxedAmount]:
        """Net and tax by code. Tax is computed, and so rounded, once per code."""
        parts = []
        for code in TAX_CODES:
            nets = [line.net for line in self.lines if line.tax_code == code]
            if nets:
                net = Money.sum(nets, self.currency)
                parts.append(TaxedAmount(code, net, tax_code(code).on(net)))
        return parts

    @property
    def total(self) -> Money:
        """The gross amount claimed."""
        return Money.sum((part.gross for part in self.breakdown), self.currency)

    def paid(self, as_of: date | None = None) -> Money:
        """The sum of the payments up to and including a day."""
        return Money.sum(
            (p.amount for p in self.payments if as_of is None or p.date <= as_of), self.currency
        )

    def open_amount(self, as_of: date | None = None) -> Money:
        """What is still owed at the end of a day; nothing before the invoice's own date."""
        if as_of is not None and as_of < self.date:
            return Money.zero(self.currency)
        return self.total - self.paid(as_of)

    @property
    def status(self) -> str:
        if not self.open_amount():
            return "paid"
        return "partly paid" if self.payments else "open"

    def settlement(self, paid_on: date) -> Money:
        """What settles the invoice on a day, less the discount for paying early."""
        if self.early_payment is None or self.payments:
            return self.open_amount()
        return self.early_payment.due(self.open_amount(), self.date, paid_on)
