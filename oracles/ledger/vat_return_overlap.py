"""A day belongs to one month, one quarter and one year, in every report and in closing.

Each command looks at another kind of period through another report, since either may be wrong.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from blackbox import Ledger, book_of, entry_of, expect, invoice_of, judge

# Nets in whole euros under code S; no two sums of them are alike.
INVOICES = {
    date(2023, 2, 28): 100,
    date(2023, 3, 1): 200,
    date(2023, 12, 31): 400,
    date(2024, 1, 1): 800,
    date(2024, 1, 31): 1600,
    date(2024, 2, 1): 3200,
    date(2024, 2, 29): 6400,
    date(2024, 3, 1): 12800,
    date(2024, 3, 31): 25600,
    date(2024, 4, 1): 51200,
    date(2024, 9, 30): 102400,
    date(2024, 10, 1): 204800,
    date(2024, 12, 31): 409600,
    date(2025, 1, 1): 819200,
}
NUMBERS = {day: f"INV-{index:04d}" for index, day in enumerate(INVOICES, 1)}


def net_of(first: date, last: date) -> int:
    return sum(net for day, net in INVOICES.items() if first <= day <= last)


def tax_of(net: int) -> int:
    return net * 19 // 100


def filled_book() -> dict[str, object]:
    """A book with an invoice on each of the days."""
    invoices, journal = [], []
    for day, net in INVOICES.items():
        number, tax = NUMBERS[day], tax_of(net)
        invoices.append(invoice_of(number, "Acme", str(day), [f"1;{net}.00;S"]))
        lines = (f"1200 {net + tax}.00", f"4000 -{net}.00 S", f"2200 -{tax}.00 S")
        journal.append(entry_of(number, str(day), *lines))
    return book_of(invoices, journal)


def returns(ledger: Ledger, label: str, first: date, last: date) -> None:
    net = net_of(first, last)
    expected = [["code", "rate", "net", "tax"], ["S", "19 %", f"{net}.00", f"{tax_of(net)}.00"]]
    expect(ledger.ok("vat", "--period", label).cells, expected, f"VAT return {label}")


def the_return_of_a_month_ends_with_it(ledger: Ledger) -> None:
    returns(ledger, "2024-01", date(2024, 1, 1), date(2024, 1, 31))
    returns(ledger, "2024-12", date(2024, 12, 1), date(2024, 12, 31))


def the_return_of_a_quarter_ends_with_it(ledger: Ledger) -> None:
    returns(ledger, "2024-Q3", date(2024, 7, 1), date(2024, 9, 30))


def the_return_of_a_year_stays(ledger: Ledger) -> None:
    returns(ledger, "2024", date(2024, 1, 1), date(2024, 12, 31))


def a_span_holds_its_last_day(ledger: Ledger) -> None:
    returns(ledger, "2024-01-15..2024-02-01", date(2024, 1, 15), date(2024, 2, 1))


def the_trial_balance_of_a_quarter_ends_with_it(ledger: Ledger) -> None:
    net = net_of(date(2024, 10, 1), date(2024, 12, 31))
    expected = [
        ["account", "name", "debit", "credit"],
        ["1200", "Receivables", f"{net + tax_of(net)}.00", "0.00"],
        ["2200", "VAT payable", "0.00", f"{tax_of(net)}.00"],
        ["4000", "Revenue", "0.00", f"{net}.00"],
    ]
    expect(ledger.ok("trial-balance", "--period", "2024-Q4").cells, expected, "trial balance of the fourth quarter")


def the_journal_of_a_leap_month_ends_with_it(ledger: Ledger) -> None:
    lines = ledger.ok("journal", "--csv", "--period", "2024-02").lines[1:]
    found = [line.split(",")[0] for line in lines[::3]]
    expect(found, ["2024-02-01", "2024-02-29"], "journal of February")


def the_statement_of_a_month_ends_with_it(ledger: Ledger) -> None:
    expected = [
        ["Statement Acme 2023-02 in EUR"],
        ["date", "document", "text", "amount", "balance"],
        ["Opening balance", "0.00"],
        ["2023-02-28", "INV-0001", "Invoice", "119.00", "119.00"],
        ["Closing balance", "119.00"],
    ]
    expect(ledger.ok("statement", "Acme", "--period", "2023-02").cells, expected, "statement of February")


def closing_a_quarter_leaves_the_next_day_open(ledger: Ledger) -> None:
    number = NUMBERS[date(2024, 1, 1)]
    ledger.ok("close", "2024-Q1")
    ledger.refuses("pay", number, "1.00", "--date", "2024-03-31")
    ledger.prints(f"{number}: 2.00 EUR paid, 950.00 EUR open", "pay", number, "2.00", "--date", "2024-04-01")


if __name__ == "__main__":
    sys.exit(
        judge(
            [
                the_return_of_a_month_ends_with_it,
                the_return_of_a_quarter_ends_with_it,
                the_return_of_a_year_stays,
                a_span_holds_its_last_day,
                the_trial_balance_of_a_quarter_ends_with_it,
                the_journal_of_a_leap_month_ends_with_it,
                the_statement_of_a_month_ends_with_it,
                closing_a_quarter_leaves_the_next_day_open,
            ],
            filled_book(),
        )
    )
