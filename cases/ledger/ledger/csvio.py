"""Invoices in from CSV, journal out to CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import TextIO

from ledger.errors import LedgerError, ValidationError
from ledger.invoices import InvoiceLine
from ledger.journal import Entry
from ledger.money import Currency, currency
from ledger.render import number
from ledger.validation import parse_date, parse_line, parse_name

INVOICE_COLUMNS = ("customer", "date", "currency", "terms", "lines")
JOURNAL_COLUMNS = ("date", "reference", "memo", "account", "debit", "credit", "tax_code")


@dataclass(frozen=True)
class InvoiceRow:
    """An invoice as a CSV file describes it, not yet issued."""

    customer: str
    date: date
    currency: Currency
    terms: int
    lines: tuple[InvoiceLine, ...]


def read_invoices(source: TextIO) -> list[InvoiceRow]:
    """All invoices of a file, or an error that names the first bad line. Lines are separated by ``|``."""
    reader = csv.DictReader(source)
    if tuple(reader.fieldnames or ()) != INVOICE_COLUMNS:
        raise ValidationError(f"the columns must be {','.join(INVOICE_COLUMNS)}")
    rows = []
    for row in reader:
        try:
            rows.append(_invoice_row(row))
        except LedgerError as error:
            raise ValidationError(f"line {reader.line_num}: {error}") from None
    return rows


def _invoice_row(row: dict[str, str]) -> InvoiceRow:
    if None in row or None in row.values():
        raise ValidationError(f"expected {len(INVOICE_COLUMNS)} columns")
    if not row["terms"].isdecimal():
        raise ValidationError(f"not a number of days: {row['terms']!r}")
    unit_of = currency(row["currency"])
    return InvoiceRow(
        parse_name(row["customer"]),
        parse_date(row["date"]),
        unit_of,
        int(row["terms"]),
        tuple(parse_line(text, unit_of) for text in row["lines"].split("|")),
    )


def write_journal(entries: Iterable[Entry], target: TextIO) -> None:
    """One CSV line per journal line."""
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(JOURNAL_COLUMNS)
    for entry in entries:
        for line in entry.lines:
            writer.writerow(
                (
                    entry.date,
                    entry.reference,
                    entry.memo,
                    line.account,
                    number(line.debit),
                    number(line.credit),
                    line.tax_code or "",
                )
            )
