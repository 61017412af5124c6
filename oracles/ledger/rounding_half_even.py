"""Amounts are rounded half to even: in every currency, for both signs, whatever computed them."""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from blackbox import Ledger, judge

DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}


def amount(exact: Fraction, code: str) -> str:
    """The amount as it must be shown. ``round`` of a fraction is exact, and half to even."""
    digits = DIGITS[code]
    units = round(exact * 10**digits)
    whole, rest = divmod(abs(units), 10**digits)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{rest:0{digits}d} {code}" if digits else f"{sign}{whole} {code}"


def rounds(ledger: Ledger, text: str, code: str) -> None:
    ledger.prints(amount(Fraction(text), code), "round", text, code)


def ties_go_to_the_even_neighbour(ledger: Ledger) -> None:
    for text in ("0.125", "0.135", "2.675", "1.005", "17.325"):
        rounds(ledger, text, "EUR")


def negative_ties_do_so_too(ledger: Ledger) -> None:
    for text in ("-0.125", "-0.135", "-0.005"):
        rounds(ledger, text, "EUR")


def every_minor_unit_does_so(ledger: Ledger) -> None:
    for text, code in (("2.5", "JPY"), ("3.5", "JPY"), ("0.0025", "KWD"), ("7.0035", "KWD")):
        rounds(ledger, text, code)


def next_to_a_tie_the_nearer_one_wins(ledger: Ledger) -> None:
    for text in ("0.1250000001", "0.1249999999", "123456789012345.125", "123456789012.1350000001"):
        rounds(ledger, text, "EUR")


def drawn_numbers_are_rounded_the_same_way(ledger: Ledger) -> None:
    draw = random.Random("rounding-half-even")
    for _ in range(6):
        text = f"{draw.randrange(10**6)}.{draw.randrange(100):02d}5"
        rounds(ledger, text, draw.choice(("EUR", "USD")))


def tax_is_rounded_so(ledger: Ledger) -> None:
    for net, code, percent in (("1.50", "S", 19), ("2.50", "S", 19), ("3.50", "S", 19), ("1.50", "R", 7)):
        tax = amount(Fraction(net) * percent / 100, "EUR")
        gross = amount(Fraction(net) + Fraction(tax.split()[0]), "EUR")
        ledger.prints(f"net {net} EUR, VAT {tax}, gross {gross}", "tax", net, "EUR", code)


def conversions_are_rounded_so(ledger: Ledger) -> None:
    cases = (
        ("0.25", "USD", "EUR", "0.5"),
        ("2.50", "EUR", "JPY", "1"),
        ("5.50", "EUR", "JPY", "1"),
        ("0.01", "EUR", "KWD", "0.25"),
    )
    for text, source, target, rate in cases:
        expected = amount(Fraction(text) * Fraction(rate), target)
        ledger.prints(expected, "convert", text, source, target, "--rate", rate)


def invoices_are_rounded_so(ledger: Ledger) -> None:
    ledger.ok("init")
    ledger.prints(
        "INV-0001 Acme: 0.12 EUR, due 2024-03-31",
        *("invoice", "Acme", "--date", "2024-03-01", "--line", "Half;0.5;0.25;Z"),
    )
    ledger.prints(
        "INV-0002 Acme: 1.78 EUR, due 2024-03-31",
        *("invoice", "Acme", "--date", "2024-03-01", "--line", "Work;1;1.50;S"),
    )


if __name__ == "__main__":
    sys.exit(
        judge(
            [
                ties_go_to_the_even_neighbour,
                negative_ties_do_so_too,
                every_minor_unit_does_so,
                next_to_a_tie_the_nearer_one_wins,
                drawn_numbers_are_rounded_the_same_way,
                tax_is_rounded_so,
                conversions_are_rounded_so,
                invoices_are_rounded_so,
            ]
        )
    )
