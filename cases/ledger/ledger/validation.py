"""Values that come from outside, and an audit of a whole book."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from ledger.accounts import RECEIVABLES
from ledger.book import Book
from ledger.errors import ValidationError
from ledger.invoices import InvoiceLine
from ledger.money import Currency, Money
from ledger.tax import tax_code

_DECIMAL = re.compile(r"[+-]?\d{1,15}(\.\d{1,10})?")
_NAME = re.compile(r"\w(?:[\w .&-]{0,58}\w)?")


def parse_date(text: str) -> date:
    """A day as ``2024-01-31``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValidationError(f"not a date: {text!r}") from None


def parse_decimal(text: str) -> Decimal:
    """A plain decimal number: no exponent, no thousands separators."""
    if not _DECIMAL.fullmatch(text):
        raise ValidationError(f"not a number: {text!r}")
    return Decimal(text)


def parse_amount(text: str, unit_of: Currency) -> Money:
    """An amount that has no more digits than its currency."""
    exact = parse_decimal(text)
    amount = Money(exact, unit_of)
    if amount.amount != exact:
        raise ValidationError(f"{text} has more digits than {unit_of} has")
    return amount


def parse_name(text: str) -> str:
    """A customer's name: one line of letters, digits and a few marks."""
    name = text.strip()
    if not _NAME.fullmatch(name):
        raise ValidationError(f"not a usable name: {text!r}")
    return name


def parse_line(text: str, unit_of: Currency) -> InvoiceLine:
    """An invoice line as ``description;quantity;unit price;tax code[;discount percent]``."""
    fields = [part.strip() for part in text.split(";")]
    if len(fields) not in (4, 5) or not fields[0]:
        raise ValidationError(f"not an invoice line: {text!r}")
    return InvoiceLine(
        description=fields[0],
        quantity=parse_decimal(fields[1]),
        unit_price=parse_amount(fields[2], unit_of),
        tax_code=tax_code(fields[3]).code,
        discount=parse_decimal(fields[4]) if len(fields) == 5 else Decimal(0),
    )


def audit(book: Book) -> list[str]:
    """What is wrong with a book, one sentence each; nothing if it is sound."""
    problems = []
    for entry in book.journal:
        for line in entry.lines:
            if line.account not in book.chart:
                problems.append(f"entry {entry.reference} of {entry.date} uses account {line.account}")
    for invoice in book.invoices.values():
        carried = book.journal.balance(RECEIVABLES, reference=invoice.number)
        owed = invoice.open_amount()
        if invoice.currency == book.base and carried != owed:
            problems.append(f"{invoice.number}: {owed} open, but {carried} in the journal")
        if not owed and carried:
            problems.append(f"{invoice.number}: settled, but {carried} in the journal")
    total = book.journal.balance(RECEIVABLES)
    documents = Money.sum(
        (book.journal.balance(RECEIVABLES, reference=number) for number in book.invoices), book.base
    )
    if total != documents:
        problems.append(f"receivables of {total}, of which {total - documents} belongs to no invoice")
    return problems
