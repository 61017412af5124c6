"""Amounts are rounded half to even: in every currency, for both signs, whatever computed them.

Many amounts are looked at through few commands: an import computes them, and three reports show them.
"""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from blackbox import Ledger, book_of, expect, judge

DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}
RATES = {"EUR": "1", "USD": "0.5", "JPY": "0.005", "KWD": "2.5"}
PERCENT = {"S": 19, "R": 7, "Z": 0}
DAY = "2024-03-01"


def rounded(exact: Fraction, code: str) -> Fraction:
    """To minor units; ``round`` of a fraction is exact, and half to even."""
    return Fraction(round(exact * 10 ** DIGITS[code]), 10 ** DIGITS[code])


def number(exact: Fraction, code: str) -> str:
    """The amount as it must be shown, without its currency."""
    digits = DIGITS[code]
    whole, rest = divmod(round(abs(exact) * 10**digits), 10**digits)
    sign = "-" if rounded(exact, code) < 0 else ""
    return f"{sign}{whole}.{rest:0{digits}d}" if digits else f"{sign}{whole}"


def amount(exact: Fraction, code: str) -> str:
    return f"{number(exact, code)} {code}"


class Line(NamedTuple):
    """A line of an invoice."""

    quantity: str
    price: str
    tax_code: str = "Z"
    discount: str = "0"

    def net(self, code: str) -> Fraction:
        gross = rounded(Fraction(self.quantity) * Fraction(self.price), code)
        return gross - rounded(gross * Fraction(self.discount) / 100, code)


class Invoice(NamedTuple):
    """An invoice of one tax code, for a customer of its own."""

    customer: str
    currency: str
    lines: tuple[Line, ...]

    @property
    def parts(self) -> tuple[Fraction, Fraction]:
        """Net and tax."""
        net = sum((line.net(self.currency) for line in self.lines), Fraction())
        return net, rounded(net * PERCENT[self.lines[0].tax_code] / 100, self.currency)

    @property
    def total(self) -> Fraction:
        return sum(self.parts)

    @property
    def posted(self) -> tuple[Fraction, Fraction]:
        """Net and tax in euros."""
        net, tax = (rounded(part * Fraction(RATES[self.currency]), "EUR") for part in self.parts)
        return net, tax

    @property
    def row(self) -> str:
        """The invoice in a CSV file."""
        lines = "|".join(";".join(("Work", *line)) for line in self.lines)
        return f"{self.customer},{DAY},{self.currency},30,{lines}"


def made_invoices() -> list[Invoice]:
    """Ties up and down from every computation, their neighbours, and drawn ones."""
    large = Line("1", "1000", "Z")
    found = [
        *(("EUR", (Line("0.5", price),)) for price in ("0.25", "0.27", "5.35", "2.01", "34.65")),
        *(("EUR", (large, Line("-0.5", price))) for price in ("0.25", "0.27", "0.01")),
        *(("EUR", (Line(quantity, "0.25"),)) for quantity in ("0.5000000004", "0.4999999996")),
        *(("JPY", (Line("0.5", price),)) for price in ("5", "7")),
        *(("KWD", (Line("0.5", price),)) for price in ("0.005", "14.007")),
        *(("EUR", (Line("1", price, "S"),)) for price in ("1.50", "2.50", "3.50")),
        ("EUR", (Line("1", "1.50", "R"),)),
        *(("EUR", (Line("1", price, "Z", "50"),)) for price in ("0.25", "0.27")),
        *(("USD", (Line("1", price),)) for price in ("0.25", "0.27", "1234567890.11")),
        *(("JPY", (Line("1", price),)) for price in ("5", "7")),
        *(("KWD", (Line("1", price),)) for price in ("0.010", "0.026")),
    ]
    draw = random.Random("rounding-half-even")
    for code in ("EUR", "USD") * 6:
        line = Line("0.5", f"{draw.randrange(10**6)}.{draw.randrange(50) * 2 + 1:02d}", draw.choice("SRZ"))
        found.append((code, (line,)))
    return [Invoice(f"Customer {index:02d}", *one) for index, one in enumerate(found)]


INVOICES = made_invoices()


def the_command_does_so(ledger: Ledger) -> None:
    for text, code in (("0.125", "EUR"), ("-0.135", "EUR"), ("123456789012.1350000001", "EUR")):
        ledger.prints(amount(Fraction(text), code), "round", text, code)


def tax_is_rounded_so(ledger: Ledger) -> None:
    ledger.prints("net 1.50 EUR, VAT 0.28 EUR, gross 1.78 EUR", "tax", "1.50", "EUR", "S")


def conversions_are_rounded_so(ledger: Ledger) -> None:
    ledger.prints("2 JPY", "convert", "2.50", "EUR", "JPY", "--rate", "1")


def invoices_are_issued(ledger: Ledger) -> None:
    source = ledger.scratch / "invoices.csv"
    rows = [invoice.row for invoice in INVOICES]
    source.write_text("\n".join(["customer,date,currency,terms,lines", *rows]) + "\n")
    ledger.prints(f"{len(rows)} invoices imported", "import", str(source))


def their_totals_are_rounded_so(ledger: Ledger) -> None:
    found = {row[2]: row[4] for row in ledger.ok("invoices").cells[1:]}
    expect(found, {one.customer: amount(one.total, one.currency) for one in INVOICES}, "list of invoices")


def what_is_owed_is_converted_so(ledger: Ledger) -> None:
    found = {row[0]: row[-1] for row in ledger.ok("aging", "--as-of", DAY).cells[1:-1]}
    owed = {one.customer: number(one.total * Fraction(RATES[one.currency]), "EUR") for one in INVOICES}
    expect(found, {customer: value for customer, value in owed.items() if value != "0.00"}, "aging")


def postings_are_converted_so(ledger: Ledger) -> None:
    lines = [line.split(",") for line in ledger.ok("journal", "--csv").lines[1:]]
    found = [(account, credited) for _, _, _, account, _, credited, _ in lines if account != "1200"]
    expected = []
    for one in INVOICES:
        net, tax = one.posted
        expected.append(("4000", number(net, "EUR")))
        if tax:
            expected.append(("2200", number(tax, "EUR")))
    expect(found, expected, "journal")


if __name__ == "__main__":
    rates = [[code, "2024-01-02", rate] for code, rate in RATES.items() if code != "EUR"]
    sys.exit(
        judge(
            [
                the_command_does_so,
                tax_is_rounded_so,
                conversions_are_rounded_so,
                invoices_are_issued,
                their_totals_are_rounded_so,
                what_is_owed_is_converted_so,
                postings_are_converted_so,
            ],
            book_of(rates=rates),
        )
    )
