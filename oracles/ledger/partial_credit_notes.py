"""Credit notes on part of an invoice, and everything that must know of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from blackbox import Ledger, expect, judge

MIXED = ("invoice", "Acme", "--date", "2024-01-15", "--line", "Work;8;95.00;S", "--line", "Travel;1;120.40;R")
PLAIN = ("invoice", "Bolt", "--date", "2024-02-05", "--line", "Work;1;100.00;S")


def books(ledger: Ledger) -> None:
    """INV-0001 over 1033.23 under two codes, INV-0002 over 119.00 under one."""
    ledger.ok("init")
    ledger.prints("INV-0001 Acme: 1033.23 EUR, due 2024-02-14", *MIXED)
    ledger.prints("INV-0002 Bolt: 119.00 EUR, due 2024-03-06", *PLAIN)


def credit(ledger: Ledger, number: str, amount: str, day: str, expected: str) -> None:
    ledger.prints(expected, "credit", number, amount, "--date", day)
    ledger.prints("ok", "check")


def a_part_of_one_code(ledger: Ledger) -> None:
    credit(
        *(ledger, "INV-0002", "50.00", "2024-02-20"),
        "CN-0001 for INV-0002: 50.00 EUR (net 42.02 EUR, VAT 7.98 EUR), 69.00 EUR open",
    )
    rows = ledger.ok("invoices").cells
    expect(rows[2], ["INV-0002", "2024-02-05", "Bolt", "open", "119.00 EUR", "69.00 EUR"], "list of invoices")


def several_codes_in_proportion(ledger: Ledger) -> None:
    credit(
        *(ledger, "INV-0001", "100.00", "2024-03-20"),
        "CN-0001 for INV-0001: 100.00 EUR (net 85.20 EUR, VAT 14.80 EUR), 933.23 EUR open",
    )
    credit(
        *(ledger, "INV-0001", "0.05", "2024-03-20"),
        "CN-0002 for INV-0001: 0.05 EUR (net 0.04 EUR, VAT 0.01 EUR), 933.18 EUR open",
    )


def the_vat_return_of_its_period(ledger: Ledger) -> None:
    ledger.ok("credit", "INV-0001", "100.00", "--date", "2024-03-20")
    january = [["S", "19 %", "760.00", "144.40"], ["R", "7 %", "120.40", "8.43"]]
    expect(ledger.ok("vat", "--period", "2024-01").cells[1:], january, "VAT return of the invoice")
    march = [["S", "19 %", "-73.55", "-13.98"], ["R", "7 %", "-11.65", "-0.82"]]
    expect(ledger.ok("vat", "--period", "2024-03").cells[1:], march, "VAT return of the credit note")
    balance = [
        ["1200", "Receivables", "1052.23", "0.00"],
        ["2200", "VAT payable", "0.00", "157.03"],
        ["4000", "Revenue", "0.00", "895.20"],
    ]
    expect(ledger.ok("trial-balance").cells[1:], balance, "trial balance")


def the_journal_is_balanced_and_has_codes(ledger: Ledger) -> None:
    ledger.ok("credit", "INV-0002", "50.00", "--date", "2024-02-20", "--reason", "Hours not worked")
    lines = [line.split(",") for line in ledger.ok("journal", "--csv", "--period", "2024-02-20..2024-02-21").lines[1:]]
    found = sorted((account, debit, credited, code) for _, _, _, account, debit, credited, code in lines)
    expected = [("1200", "0.00", "50.00", ""), ("2200", "7.98", "0.00", "S"), ("4000", "42.02", "0.00", "S")]
    expect(found, expected, "lines of the credit note")
    expect({line[0] for line in lines}, {"2024-02-20"}, "its date")


def aging_and_statement_from_its_day_on(ledger: Ledger) -> None:
    ledger.ok("pay", "INV-0002", "9.00", "--date", "2024-02-10")
    ledger.ok("credit", "INV-0002", "50.00", "--date", "2024-02-20")
    for day, owed in (("2024-02-19", "110.00"), ("2024-02-20", "60.00")):
        expect(
            ledger.ok("aging", "--as-of", day).cells[2],
            ["Bolt", owed, "0.00", "0.00", "0.00", "0.00", owed],
            f"aging on {day}",
        )
    expected = [
        ["Opening balance", "0.00"],
        ["2024-02-05", "INV-0002", "Invoice", "119.00", "119.00"],
        ["2024-02-10", "INV-0002", "Payment", "-9.00", "110.00"],
        ["2024-02-20", "CN-0001", "Credit note", "-50.00", "60.00"],
        ["Closing balance", "60.00"],
    ]
    span = "2024-02-02..2024-02-25"
    expect(ledger.ok("statement", "Bolt", "--period", span).cells[2:], expected, "statement")
    later = ledger.ok("statement", "Bolt", "--period", "2024-02-21..2024-02-25").cells
    expect(later[2:], [["Opening balance", "60.00"], ["Closing balance", "60.00"]], "next statement")


def what_is_not_open_is_refused(ledger: Ledger) -> None:
    ledger.ok("pay", "INV-0002", "100.00", "--date", "2024-02-10")
    for amount, day in (
        ("19.01", "2024-02-20"),
        ("0.00", "2024-02-20"),
        ("-5.00", "2024-02-20"),
        ("1.005", "2024-02-20"),
        ("5.00", "2024-02-04"),
    ):
        ledger.refuses("credit", "INV-0002", amount, "--date", day)
    ledger.refuses("credit", "INV-0009", "5.00", "--date", "2024-02-20")
    ledger.ok("credit", "INV-0002", "18.00", "--date", "2024-02-20")
    ledger.refuses("credit", "INV-0002", "1.01", "--date", "2024-02-20")
    ledger.refuses("pay", "INV-0002", "1.01", "--date", "2024-02-21")
    ledger.prints("INV-0002: 1.00 EUR paid, 0.00 EUR open", "pay", "INV-0002", "1.00", "--date", "2024-02-21")
    ledger.ok("close", "2024-01-01..2024-02-25")
    ledger.refuses("credit", "INV-0001", "5.00", "--date", "2024-02-25")
    ledger.prints("ok", "check")


def status_and_numbers(ledger: Ledger) -> None:
    credit(
        *(ledger, "INV-0002", "119.00", "2024-02-20"),
        "CN-0001 for INV-0002: 119.00 EUR (net 100.00 EUR, VAT 19.00 EUR), 0.00 EUR open",
    )
    ledger.ok("pay", "INV-0001", "1000.00", "--date", "2024-02-20")
    expect([row[3] for row in ledger.ok("invoices").cells[1:]], ["partly paid", "credited"], "status")
    result = ledger.ok("credit", "INV-0001", "33.23", "--date", "2024-02-22")
    expect(result.out.split(" ")[0], "CN-0002", "number of the second note")
    expect([row[3] for row in ledger.ok("invoices").cells[1:]], ["paid", "credited"], "status at the end")
    ledger.prints("ok", "check")


def foreign_notes_at_the_rate_of_the_invoice(ledger: Ledger) -> None:
    ledger.book.unlink()
    ledger.ok("init")
    ledger.ok("rate", "USD", "2024-01-02", "0.9132")
    ledger.ok("rate", "USD", "2024-02-20", "0.9800")
    ledger.ok("invoice", "Bolt", "--date", "2024-01-22", "--currency", "USD", "--line", "Licence;1;1200.00;Z")
    credit(
        *(ledger, "INV-0001", "200.00", "2024-02-25"),
        "CN-0001 for INV-0001: 200.00 USD (net 200.00 USD, VAT 0.00 USD), 1000.00 USD open",
    )
    expected = [["1200", "Receivables", "913.20", "0.00"], ["4000", "Revenue", "0.00", "913.20"]]
    expect(ledger.ok("trial-balance").cells[1:], expected, "trial balance")
    ledger.ok("pay", "INV-0001", "1000.00", "--date", "2024-02-26")
    expected = [
        ["1000", "Bank", "980.00", "0.00"],
        ["4000", "Revenue", "0.00", "913.20"],
        ["7000", "Exchange differences", "0.00", "66.80"],
    ]
    expect(ledger.ok("trial-balance").cells[1:], expected, "trial balance after the payment")
    ledger.prints("ok", "check")


def books_of_before_still_load(ledger: Ledger) -> None:
    invoice = {
        **{"number": "INV-0001", "customer": "Acme", "date": "2024-01-15", "currency": "EUR", "terms": 30},
        "early_payment": None,
        "lines": [
            {"description": "Work", "quantity": "1", "unit_price": "100.00", "tax_code": "S", "discount": "0"}
        ],
        "payments": [],
    }
    entry = {
        **{"date": "2024-01-15", "reference": "INV-0001", "memo": "Invoice to Acme"},
        "lines": [["1200", "119.00", None], ["4000", "-100.00", "S"], ["2200", "-19.00", "S"]],
    }
    book = {
        **{"version": 1, "base": "EUR", "closed_until": None, "rates": []},
        **{"invoices": [invoice], "journal": [entry]},
    }
    ledger.book.write_text(json.dumps(book))
    credit(
        *(ledger, "INV-0001", "11.90", "2024-01-20"),
        "CN-0001 for INV-0001: 11.90 EUR (net 10.00 EUR, VAT 1.90 EUR), 107.10 EUR open",
    )


if __name__ == "__main__":
    sys.exit(
        judge(
            [
                a_part_of_one_code,
                several_codes_in_proportion,
                the_vat_return_of_its_period,
                the_journal_is_balanced_and_has_codes,
                aging_and_statement_from_its_day_on,
                what_is_not_open_is_refused,
                status_and_numbers,
                foreign_notes_at_the_rate_of_the_invoice,
                books_of_before_still_load,
            ],
            prepare=books,
        )
    )
