"""Runs in a process of its own: calls the candidate's package and prints plain data as JSON.

The package is loaded from its directory, which is the first argument; the workspace's root is never on the path, so
that no module in it can stand in for another.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

APRIL = ("2024-04-02", "2024-04-20")


def load_package(root: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "ledger", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["ledger"] = package
    spec.loader.exec_module(package)


def make_book():
    """Acme owes in three currencies, Bolt in euros, Core has paid all its dollars."""
    from ledger.book import Book
    from ledger.invoices import InvoiceLine
    from ledger.money import Money, currency

    book = Book(currency("EUR"))
    rates = (
        ("USD", "2024-01-02", "0.91"),
        ("CHF", "2024-01-02", "1.03"),
        ("USD", "2024-04-10", "0.93"),
        ("CHF", "2024-04-20", "1.05"),
        ("USD", "2024-04-22", "0.88"),
    )
    for code, day, value in rates:
        book.rates.add(currency(code), date.fromisoformat(day), Decimal(value))
    documents = (
        ("Acme", "2024-03-05", "USD", "1000.00", "Z"),
        ("Acme", "2024-03-08", "EUR", "200.00", "S"),
        ("Acme", "2024-04-04", "CHF", "500.00", "Z"),
        ("Bolt", "2024-03-11", "EUR", "50.00", "S"),
        ("Core", "2024-03-12", "USD", "300.00", "Z"),
        ("Acme", "2024-04-12", "USD", "400.00", "Z"),
    )
    for customer, day, code, price, tax in documents:
        line = InvoiceLine("Work", Decimal(1), Money.of(price, code), tax)
        book.add_invoice(customer, date.fromisoformat(day), [line], currency=currency(code))
    payments = (
        ("INV-0001", "250.00", "USD", "2024-04-11"),
        ("INV-0005", "300.00", "USD", "2024-03-20"),
        ("INV-0001", "150.00", "USD", "2024-04-25"),
    )
    for number, amount, code, day in payments:
        book.pay(number, Money.of(amount, code), date.fromisoformat(day))
    return book


def span(first: str, last: str):
    from ledger.periods import Period

    return Period.parse(f"{first}..{last}")


def error_of(call) -> str:
    """The class names of what a call raises, joined; empty if it raises nothing."""
    try:
        call()
    except Exception as error:
        return " ".join(kind.__name__ for kind in type(error).__mro__)
    return ""


def row_of(row) -> list[str]:
    return [str(row.date), row.document, row.text, str(row.amount), str(row.balance)]


def statement(book):
    from ledger.money import currency
    from ledger.statement import build_statement

    account = build_statement(book, "Acme", span(*APRIL), currency("EUR"))
    plain = build_statement(book, "Acme", span(*APRIL))
    return {
        "sections": [
            [str(one.currency), str(one.opening), [row_of(row) for row in one.rows], str(one.closing)]
            for one in account.sections
        ],
        "customer": account.customer,
        "period": str(account.period),
        "total": str(account.total),
        "plain_total": plain.total,
        "total_usd": str(build_statement(book, "Acme", span(*APRIL), currency("USD")).total),
        "total_later": str(build_statement(book, "Acme", span("2024-04-02", "2024-04-23"), currency("EUR")).total),
        "missing": error_of(lambda: build_statement(book, "Acme", span(*APRIL), currency("GBP"))),
        "unknown": error_of(lambda: build_statement(book, "Nobody", span(*APRIL))),
    }


def text(book):
    from ledger import render
    from ledger.money import currency
    from ledger.statement import build_statement

    return {
        "one": render.statement(build_statement(book, "Bolt", span("2024-03-02", "2024-03-20"))),
        "several": render.statement(build_statement(book, "Acme", span(*APRIL), currency("EUR"))),
    }


def exposure(book):
    from ledger.exposure import exposure, exposure_total

    found = {}
    for day in ("2024-03-04", "2024-04-05", "2024-04-11", "2024-04-20", "2024-04-25"):
        rows = exposure(book, date.fromisoformat(day))
        found[day] = [
            [[str(row.currency), str(row.open), str(row.carried), str(row.value), str(row.difference)] for row in rows],
            str(exposure_total(book, rows)),
        ]
    return found


def revaluation(book):
    from ledger.exposure import exposure, revalue
    from ledger.validation import audit

    day = date(2024, 4, 20)
    before = len(book.journal)
    posted = [[str(row.currency), str(row.difference)] for row in revalue(book, day)]
    entries = list(book.journal)[before:]
    return {
        "posted": posted,
        "entries": sorted(
            [str(entry.date), sorted([line.account, str(line.amount)] for line in entry.lines)] for entry in entries
        ),
        "until": {
            account: str(book.journal.balance(account, span("2024-01-01", "2024-04-20")))
            for account in ("1290", "7100")
        },
        "after": {account: str(book.journal.balance(account)) for account in ("1290", "7100")},
        "again": error_of(lambda: revalue(book, day)),
        "entries_after_again": len(book.journal) - before,
        "audit": audit(book),
        "exposure": [str(row.carried) for row in exposure(book, day)],
    }


def closing(book):
    from ledger.exposure import revalue

    book.close(span("2024-01-01", "2024-04-20"))
    before = len(book.journal)
    return {"closed": error_of(lambda: revalue(book, date(2024, 4, 20))), "entries": len(book.journal) - before}


def answer_of(scenario):
    """What a scenario finds on a book of its own; one that fails does not hide the others."""
    try:
        return scenario(make_book())
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


SCENARIOS = (statement, text, exposure, revaluation, closing)

if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)
    load_package(Path(sys.argv[1]))
    answer = json.dumps({scenario.__name__: answer_of(scenario) for scenario in SCENARIOS})
    with os.fdopen(answers, "w") as stream:
        stream.write(answer)
