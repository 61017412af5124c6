"""The aging report: what customers owe, by how long it has been overdue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ledger.book import Book
from ledger.money import Money

BUCKETS: tuple[tuple[str, int | None], ...] = (
    ("current", 0),
    ("1-30", 30),
    ("31-60", 60),
    ("61-90", 90),
    ("over 90", None),
)


def bucket(days_overdue: int) -> int:
    """The index of the bucket for an invoice that many days past its due date (0 or less: not yet due)."""
    for index, (_, limit) in enumerate(BUCKETS):
        if limit is None or days_overdue <= limit:
            return index
    raise AssertionError("the last bucket has no limit")


@dataclass(frozen=True)
class AgingRow:
    """A customer's open amounts by bucket, in the base currency."""

    customer: str
    amounts: tuple[Money, ...]
    total: Money


def aging_report(book: Book, as_of: date) -> list[AgingRow]:
    """One row per customer who owes something at the end of a day, at that day's rates."""
    rows = []
    for customer in book.customers:
        amounts = [Money.zero(book.base) for _ in BUCKETS]
        for invoice in book.invoices_of(customer):
            owed = invoice.open_amount(as_of)
            if owed:
                index = bucket((as_of - invoice.due).days)
                amounts[index] += book.rates.convert(owed, book.base, as_of)
        total = Money.sum(amounts, book.base)
        if total:
            rows.append(AgingRow(customer, tuple(amounts), total))
    return rows


def aging_totals(book: Book, rows: list[AgingRow]) -> AgingRow:
    """The sum of the rows, as a row."""
    amounts = tuple(
        Money.sum((row.amounts[index] for row in rows), book.base) for index in range(len(BUCKETS))
    )
    return AgingRow("Total", amounts, Money.sum(amounts, book.base))
