"""Credit notes on part of an invoice, and everything that must know of them.

One story on a book that was saved before there were credit notes. The invoice in dollars is at par on its own day and
on no other, so that its postings come out the same however they are computed, unless at the rate of another day.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from blackbox import Ledger, book_of, entry_of, expect, invoice_of, judge


def older_book() -> dict[str, object]:
    """INV-0001 over 1033.23 dollars under two codes, of which 33.23 are paid; INV-0002 over 119 euros under one."""
    mixed = invoice_of("INV-0001", "Acme", "2024-01-15", ["8;95.00;S", "1;120.40;R"], "USD")
    mixed["payments"].append(["2024-02-20", "33.23"])
    return book_of(
        [mixed, invoice_of("INV-0002", "Bolt", "2024-02-05", ["1;100.00;S"])],
        [
            entry_of(
                *("INV-0001", "2024-01-15", "1200 1033.23"),
                *("4000 -760.00 S", "2200 -144.40 S", "4000 -120.40 R", "2200 -8.43 R"),
            ),
            entry_of("INV-0002", "2024-02-05", "1200 119.00", "4000 -100.00 S", "2200 -19.00 S"),
            entry_of("INV-0001", "2024-02-20", "1000 32.57", "1200 -33.23", "7000 0.66"),
        ],
        rates=[["USD", "2024-01-02", "1"], ["USD", "2024-02-20", "0.98"], ["USD", "2024-03-21", "1.05"]],
        closed_until="2024-01-31",
    )


def a_part_is_credited_in_proportion(ledger: Ledger) -> None:
    ledger.prints(
        "CN-0001 for INV-0001: 100.00 USD (net 85.20 USD, VAT 14.80 USD), 900.00 USD open",
        *("credit", "INV-0001", "100.00", "--date", "2024-02-20", "--reason", "Hours not worked"),
    )


def more_than_is_open_is_refused(ledger: Ledger) -> None:
    ledger.refuses("credit", "INV-0001", "900.01", "--date", "2024-03-20")


def nothing_and_less_is_refused(ledger: Ledger) -> None:
    for amount in ("0.00", "-5.00"):
        ledger.refuses("credit", "INV-0002", amount, "--date", "2024-03-20")


def a_day_before_the_invoice_is_refused(ledger: Ledger) -> None:
    ledger.refuses("credit", "INV-0002", "5.00", "--date", "2024-02-04")


def a_closed_day_is_refused(ledger: Ledger) -> None:
    ledger.refuses("credit", "INV-0001", "5.00", "--date", "2024-01-31")


def numbers_run_over_the_whole_book(ledger: Ledger) -> None:
    ledger.prints(
        "CN-0002 for INV-0002: 119.00 EUR (net 100.00 EUR, VAT 19.00 EUR), 0.00 EUR open",
        *("credit", "INV-0002", "119.00", "--date", "2024-03-20"),
    )


def a_payment_settles_the_rest(ledger: Ledger) -> None:
    ledger.refuses("pay", "INV-0001", "900.01", "--date", "2024-03-21")
    expected = "INV-0001: 900.00 USD paid, 0.00 USD open"
    ledger.prints(expected, "pay", "INV-0001", "900.00", "--date", "2024-03-21")


def the_list_of_invoices_knows_them(ledger: Ledger) -> None:
    expected = [
        ["INV-0001", "2024-01-15", "Acme", "paid", "1033.23 USD", "0.00 USD"],
        ["INV-0002", "2024-02-05", "Bolt", "credited", "119.00 EUR", "0.00 EUR"],
    ]
    expect(ledger.ok("invoices").cells[1:], expected, "list of invoices")


def aging_knows_them_from_their_day_on(ledger: Ledger) -> None:
    """On the day of the first, before that of the second."""
    expected = [
        ["Acme", "0.00", "882.00", "0.00", "0.00", "0.00", "882.00"],
        ["Bolt", "119.00", "0.00", "0.00", "0.00", "0.00", "119.00"],
        ["Total", "119.00", "882.00", "0.00", "0.00", "0.00", "1001.00"],
    ]
    expect(ledger.ok("aging", "--as-of", "2024-02-20").cells[1:], expected, "aging")


def the_statement_shows_them_after_payments(ledger: Ledger) -> None:
    expected = [
        ["Opening balance", "1033.23"],
        ["2024-02-20", "INV-0001", "Payment", "-33.23", "1000.00"],
        ["2024-02-20", "CN-0001", "Credit note", "-100.00", "900.00"],
        ["Closing balance", "900.00"],
    ]
    expect(ledger.ok("statement", "Acme", "--period", "2024-02-02..2024-02-25").cells[2:], expected, "statement")


def the_journal_has_codes_and_no_difference(ledger: Ledger) -> None:
    lines = [line.split(",") for line in ledger.ok("journal", "--csv", "--period", "2024-02-06..2024-12-31").lines[1:]]
    found = sorted([day, account, debit, credited, code] for day, _, _, account, debit, credited, code in lines)
    expected = [
        ["2024-02-20", "1000", "32.57", "0.00", ""],
        ["2024-02-20", "1200", "0.00", "100.00", ""],
        ["2024-02-20", "1200", "0.00", "33.23", ""],
        ["2024-02-20", "2200", "0.82", "0.00", "R"],
        ["2024-02-20", "2200", "13.98", "0.00", "S"],
        ["2024-02-20", "4000", "11.65", "0.00", "R"],
        ["2024-02-20", "4000", "73.55", "0.00", "S"],
        ["2024-02-20", "7000", "0.66", "0.00", ""],
        ["2024-03-20", "1200", "0.00", "119.00", ""],
        ["2024-03-20", "2200", "19.00", "0.00", "S"],
        ["2024-03-20", "4000", "100.00", "0.00", "S"],
        ["2024-03-21", "1000", "945.00", "0.00", ""],
        ["2024-03-21", "1200", "0.00", "900.00", ""],
        ["2024-03-21", "7000", "0.00", "45.00", ""],
    ]
    expect(found, expected, "journal")


def the_return_of_their_period_goes_down(ledger: Ledger) -> None:
    expected = [["S", "19 %", "26.45", "5.02"], ["R", "7 %", "-11.65", "-0.82"]]
    expect(ledger.ok("vat", "--period", "2024-02-02..2024-02-25").cells[1:], expected, "VAT return")


def the_book_is_sound(ledger: Ledger) -> None:
    ledger.prints("ok", "check")


if __name__ == "__main__":
    sys.exit(
        judge(
            [
                a_part_is_credited_in_proportion,
                more_than_is_open_is_refused,
                nothing_and_less_is_refused,
                a_day_before_the_invoice_is_refused,
                a_closed_day_is_refused,
                numbers_run_over_the_whole_book,
                a_payment_settles_the_rest,
                the_list_of_invoices_knows_them,
                aging_knows_them_from_their_day_on,
                the_statement_shows_them_after_payments,
                the_journal_has_codes_and_no_difference,
                the_return_of_their_period_goes_down,
                the_book_is_sound,
            ],
            older_book(),
        )
    )
