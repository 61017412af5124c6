"""Statements of account: a customer's documents in a period, with a running balance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from ledger.book import Book
from ledger.errors import CurrencyMismatchError
from ledger.money import Currency, Money
from ledger.periods import Period

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class StatementRow:
    """A document and the balance after it. A payment has a negative amount."""

    date: date
    document: str
    text: str
    amount: Money
    balance: Money


@dataclass(frozen=True)
class Statement:
    """What a customer owed before a period, what happened in it, what is owed at its end."""

    customer: str
    period: Period
    opening: Money
    rows: tuple[StatementRow, ...]
    closing: Money


def build_statement(book: Book, customer: str, period: Period) -> Statement:
    """The statement of a customer whose invoices are all in one currency."""
    invoices = book.invoices_of(customer)
    unit_of = _only_currency(customer, {invoice.currency for invoice in invoices})
    before = period.first - ONE_DAY
    opening = Money.sum((invoice.open_amount(before) for invoice in invoices), unit_of)

    events: list[tuple[date, int, str, str, Money]] = []
    for invoice in invoices:
        events.append((invoice.date, 0, invoice.number, "Invoice", invoice.total))
        for payment in invoice.payments:
            events.append((payment.date, 1, invoice.number, "Payment", -payment.amount))

    balance = opening
    rows = []
    for day, _, document, text, amount in sorted(events, key=lambda event: event[:3]):
        if day in period:
            balance += amount
            rows.append(StatementRow(day, document, text, amount, balance))
    return Statement(customer, period, opening, tuple(rows), balance)


def _only_currency(customer: str, currencies: set[Currency]) -> Currency:
    if len(currencies) > 1:
        codes = ", ".join(sorted(map(str, currencies)))
        raise CurrencyMismatchError(f"{customer} has invoices in several currencies: {codes}")
    return next(iter(currencies))
