"""A day belongs to one month, one quarter and one year, in every report and in closing."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from blackbox import Ledger, expect, judge

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
    date(2024, 7, 1): 102400,
    date(2024, 12, 31): 204800,
    date(2025, 1, 1): 409600,
}

SPANS = {
    "2023-02": (date(2023, 2, 1), date(2023, 2, 28)),
    "2024-01": (date(2024, 1, 1), date(2024, 1, 31)),
    "2024-02": (date(2024, 2, 1), date(2024, 2, 29)),
    "2024-03": (date(2024, 3, 1), date(2024, 3, 31)),
    "2024-06": (date(2024, 6, 1), date(2024, 6, 30)),
    "2024-12": (date(2024, 12, 1), date(2024, 12, 31)),
    "2024-Q1": (date(2024, 1, 1), date(2024, 3, 31)),
    "2024-Q2": (date(2024, 4, 1), date(2024, 6, 30)),
    "2024-Q4": (date(2024, 10, 1), date(2024, 12, 31)),
    "2024": (date(2024, 1, 1), date(2024, 12, 31)),
    "2024-01-15..2024-02-01": (date(2024, 1, 15), date(2024, 2, 1)),
    "2024-03-01..2024-03-01": (date(2024, 3, 1), date(2024, 3, 1)),
}


def fill(ledger: Ledger) -> None:
    """A book with an invoice on each of the days."""
    source = ledger.scratch / "invoices.csv"
    rows = [f"Acme,{day},EUR,30,Work;1;{net}.00;S" for day, net in INVOICES.items()]
    source.write_text("\n".join(["customer,date,currency,terms,lines", *rows]) + "\n")
    ledger.ok("init")
    ledger.prints(f"{len(rows)} invoices imported", "import", str(source))


def net_of(label: str) -> int:
    first, last = SPANS[label]
    return sum(net for day, net in INVOICES.items() if first <= day <= last)


def vat_rows(net: int) -> list[list[str]]:
    header = ["code", "rate", "net", "tax"]
    return [header, ["S", "19 %", f"{net}.00", f"{net * 19 // 100}.00"]] if net else [header]


def returns_hold_the_days_of_their_period(ledger: Ledger) -> None:
    for label in SPANS:
        expect(ledger.ok("vat", "--period", label).cells, vat_rows(net_of(label)), f"VAT return {label}")


def trial_balances_do_so_too(ledger: Ledger) -> None:
    for label in ("2024-01", "2024-02", "2024-Q1", "2024-01-15..2024-02-01"):
        net = net_of(label)
        expected = [
            ["account", "name", "debit", "credit"],
            ["1200", "Receivables", f"{net * 119 // 100}.00", "0.00"],
            ["2200", "VAT payable", "0.00", f"{net * 19 // 100}.00"],
            ["4000", "Revenue", "0.00", f"{net}.00"],
        ]
        expect(ledger.ok("trial-balance", "--period", label).cells, expected, f"trial balance {label}")


def the_journal_does_so_too(ledger: Ledger) -> None:
    for label in ("2024-02", "2024-Q1"):
        first, last = SPANS[label]
        expected = [str(day) for day in INVOICES if first <= day <= last]
        lines = ledger.ok("journal", "--csv", "--period", label).lines[1:]
        expect([line.split(",")[0] for line in lines[::3]], expected, f"journal {label}")


def statements_do_so_too(ledger: Ledger) -> None:
    ledger.ok("pay", "INV-0004", "52.00", "--date", "2024-02-01")
    before = sum(net for day, net in INVOICES.items() if day < date(2024, 1, 1)) * 119 // 100
    january = [
        ["Statement Acme 2024-01 in EUR"],
        ["date", "document", "text", "amount", "balance"],
        ["Opening balance", f"{before}.00"],
        ["2024-01-01", "INV-0004", "Invoice", "952.00", f"{before + 952}.00"],
        ["2024-01-31", "INV-0005", "Invoice", "1904.00", f"{before + 2856}.00"],
        ["Closing balance", f"{before + 2856}.00"],
    ]
    expect(ledger.ok("statement", "Acme", "--period", "2024-01").cells, january, "statement of January")
    february = ledger.ok("statement", "Acme", "--period", "2024-02").cells
    expect(february[2], ["Opening balance", f"{before + 2856}.00"], "opening balance of February")
    expect([row[0] for row in february[3:-1]], ["2024-02-01", "2024-02-01", "2024-02-29"], "rows of February")


def closing_a_month_leaves_the_next_day_open(ledger: Ledger) -> None:
    ledger.ok("close", "2024-01")
    ledger.refuses("pay", "INV-0004", "1.00", "--date", "2024-01-31")
    ledger.prints("INV-0004: 2.00 EUR paid, 950.00 EUR open", "pay", "INV-0004", "2.00", "--date", "2024-02-01")
    ledger.ok("close", "2024-Q1")
    ledger.refuses("pay", "INV-0004", "1.00", "--date", "2024-03-31")
    ledger.prints("INV-0004: 3.00 EUR paid, 947.00 EUR open", "pay", "INV-0004", "3.00", "--date", "2024-04-01")


def closing_a_span_closes_its_last_day(ledger: Ledger) -> None:
    ledger.ok("close", "2024-01-15..2024-03-01")
    ledger.refuses("pay", "INV-0004", "1.00", "--date", "2024-03-01")
    ledger.prints("INV-0004: 1.00 EUR paid, 951.00 EUR open", "pay", "INV-0004", "1.00", "--date", "2024-03-02")


if __name__ == "__main__":
    sys.exit(
        judge(
            [
                returns_hold_the_days_of_their_period,
                trial_balances_do_so_too,
                the_journal_does_so_too,
                statements_do_so_too,
                closing_a_month_leaves_the_next_day_open,
                closing_a_span_closes_its_last_day,
            ],
            prepare=fill,
        )
    )
