"""Books as JSON files. Amounts and rates are strings, so that no digit is lost."""

from __future__ import annotations

import json
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from ledger.book import Book
from ledger.discounts import EarlyPayment
from ledger.errors import ValidationError
from ledger.invoices import Invoice, InvoiceLine, Payment
from ledger.journal import Entry, Line
from ledger.money import Currency, Money, currency
from ledger.render import number

VERSION = 1


def save(book: Book, path: Path) -> None:
    """Write a book so that a crash leaves the old file or the new one, never half of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(_book_to_json(book), indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)


def load(path: Path) -> Book:
    """Read a book."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValidationError(f"no book at {path}; make one with `init`") from None
    except ValueError as error:
        raise ValidationError(f"{path} is not a book: {error}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValidationError(f"{path} is not a book of version {VERSION}")
    return _book_from_json(data)


def _book_to_json(book: Book) -> dict[str, Any]:
    return {
        "version": VERSION,
        "base": book.base.code,
        "closed_until": book.closed_until.isoformat() if book.closed_until else None,
        "rates": [
            [unit_of.code, day.isoformat(), str(value)] for unit_of, day, value in book.rates.rows()
        ],
        "invoices": [_invoice_to_json(invoice) for invoice in book.invoices.values()],
        "journal": [_entry_to_json(entry) for entry in book.journal],
    }


def _book_from_json(data: dict[str, Any]) -> Book:
    book = Book(currency(data["base"]))
    if data["closed_until"]:
        book.closed_until = date.fromisoformat(data["closed_until"])
    for code, day, value in data["rates"]:
        book.rates.add(currency(code), date.fromisoformat(day), Decimal(value))
    for item in data["invoices"]:
        invoice = _invoice_from_json(item)
        book.invoices[invoice.number] = invoice
    for item in data["journal"]:
        book.journal.append(_entry_from_json(item, book.base))
    return book


def _invoice_to_json(invoice: Invoice) -> dict[str, Any]:
    early = invoice.early_payment
    return {
        "number": invoice.number,
        "customer": invoice.customer,
        "date": invoice.date.isoformat(),
        "currency": invoice.currency.code,
        "terms": invoice.terms,
        "early_payment": [str(early.percent), early.days] if early else None,
        "lines": [
            {
                "description": line.description,
                "quantity": str(line.quantity),
                "unit_price": number(line.unit_price),
                "tax_code": line.tax_code,
                "discount": str(line.discount),
            }
            for line in invoice.lines
        ],
        "payments": [[p.date.isoformat(), number(p.amount)] for p in invoice.payments],
    }


def _invoice_from_json(item: dict[str, Any]) -> Invoice:
    unit_of = currency(item["currency"])
    early = item["early_payment"]
    return Invoice(
        number=item["number"],
        customer=item["customer"],
        date=date.fromisoformat(item["date"]),
        currency=unit_of,
        lines=tuple(
            InvoiceLine(
                line["description"],
                Decimal(line["quantity"]),
                Money(Decimal(line["unit_price"]), unit_of),
                line["tax_code"],
                Decimal(line["discount"]),
            )
            for line in item["lines"]
        ),
        terms=item["terms"],
        early_payment=EarlyPayment(Decimal(early[0]), early[1]) if early else None,
        payments=[
            Payment(date.fromisoformat(day), Money(Decimal(amount), unit_of))
            for day, amount in item["payments"]
        ],
    )


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    return {
        "date": entry.date.isoformat(),
        "reference": entry.reference,
        "memo": entry.memo,
        "lines": [[line.account, number(line.amount), line.tax_code] for line in entry.lines],
    }


def _entry_from_json(item: dict[str, Any], base: Currency) -> Entry:
    lines = tuple(Line(account, Money(Decimal(amount), base), code) for account, amount, code in item["lines"])
    return Entry(date.fromisoformat(item["date"]), item["reference"], item["memo"], lines)
