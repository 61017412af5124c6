"""What several test modules build on."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from ledger.book import Book
from ledger.invoices import InvoiceLine
from ledger.money import Money, currency

EUR = currency("EUR")
USD = currency("USD")


def line(price: str, code: str = "S", quantity: str = "1", unit_of: str = "EUR") -> InvoiceLine:
    return InvoiceLine("Work", Decimal(quantity), Money.of(price, unit_of), code)


def sample_book() -> Book:
    """Two customers, one of them billed in dollars."""
    book = Book(EUR)
    book.rates.add(USD, date(2024, 1, 2), Decimal("0.9132"))
    book.rates.add(USD, date(2024, 2, 20), Decimal("0.9250"))
    book.add_invoice("Acme", date(2024, 1, 15), [line("760.00"), line("120.40", "R")])
    book.add_invoice("Bolt", date(2024, 1, 22), [line("1200.00", "Z", unit_of="USD")], currency=USD)
    book.add_invoice("Acme", date(2024, 2, 5), [line("85.50", quantity="4")], terms=14)
    return book
