"""Statements in several currencies, exposure and revaluation.

The candidate's package is called in another process, by the probe; here its answers are judged. Test runner and
candidate never share a process.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ORACLE = Path(__file__).parent
sys.path.insert(0, str(ORACLE))

from blackbox import Ledger, book_of, bound_files, entry_of, invoice_of, ledger, run

WORKSPACE = Path.cwd()
bound_files()

ACME = [
    ["EUR", "238.00 EUR", [], "238.00 EUR"],
    ["CHF", "0.00 CHF", [["2024-04-04", "INV-0003", "Invoice", "500.00 CHF", "500.00 CHF"]], "500.00 CHF"],
    [
        "USD",
        "1000.00 USD",
        [
            ["2024-04-11", "INV-0001", "Payment", "-250.00 USD", "750.00 USD"],
            ["2024-04-12", "INV-0006", "Invoice", "400.00 USD", "1150.00 USD"],
        ],
        "1150.00 USD",
    ],
]


@functools.cache
def answers() -> dict[str, Any]:
    """What the candidate's package answers, by scenario."""
    argv = [sys.executable, "-I", "-S", "-B", str(ORACLE / "multi_currency_probe.py"), str(WORKSPACE / "ledger")]
    with tempfile.TemporaryDirectory() as home:
        result = run(argv, WORKSPACE, Path(home))
    assert result.status == 0, result.err[-2000:]
    return json.loads(result.out)


def probe(scenario: str) -> Any:
    found = answers()[scenario]
    assert "error" not in found, found
    return found


def test_sections_base_currency_first() -> None:
    found = probe("statement")
    assert found["sections"] == ACME
    assert (found["customer"], found["period"]) == ("Acme", "2024-04-02..2024-04-20")


def test_total_at_the_rates_of_the_last_day() -> None:
    found = probe("statement")
    assert found["total"] == "1832.50 EUR"  # 238 + 500 * 1.05 + 1150 * 0.93
    assert found["total_usd"] == "1970.43 USD"  # 255.91 + 564.52 + 1150
    assert found["total_later"] == "1775.00 EUR"


def test_no_total_unless_asked_for() -> None:
    assert probe("statement")["plain_total"] is None


def test_missing_rates_and_customers_are_errors() -> None:
    found = probe("statement")
    assert "MissingRateError" in found["missing"].split()
    assert "NotFoundError" in found["unknown"].split()


def test_text_of_one_currency_is_as_before() -> None:
    assert probe("text")["one"].splitlines() == [
        "Statement Bolt 2024-03-02..2024-03-20 in EUR",
        "date        document  text             amount  balance",
        "                      Opening balance             0.00",
        "2024-03-11  INV-0004  Invoice           59.50    59.50",
        "                      Closing balance            59.50",
    ]


def test_text_of_several_currencies() -> None:
    blocks = probe("text")["several"].split("\n\n")
    titles = [block.splitlines()[0] for block in blocks]
    assert titles == [
        "Statement Acme 2024-04-02..2024-04-20 in EUR",
        "Statement Acme 2024-04-02..2024-04-20 in CHF",
        "Statement Acme 2024-04-02..2024-04-20 in USD",
        "Total 1832.50 EUR at the rates of 2024-04-20",
    ]
    assert blocks[2].splitlines()[-2:] == [
        "2024-04-12  INV-0006  Invoice           400.00  1150.00",
        "                      Closing balance           1150.00",
    ]


CHF = ["CHF", "500.00 CHF", "515.00 EUR"]
EXPOSURE = {
    "2024-03-04": [[], "0.00 EUR"],
    "2024-04-05": [
        [[*CHF, "515.00 EUR", "0.00 EUR"], ["USD", "1000.00 USD", "910.00 EUR", "910.00 EUR", "0.00 EUR"]],
        "0.00 EUR",
    ],
    "2024-04-11": [
        [[*CHF, "515.00 EUR", "0.00 EUR"], ["USD", "750.00 USD", "682.50 EUR", "697.50 EUR", "15.00 EUR"]],
        "15.00 EUR",
    ],
    "2024-04-20": [
        [[*CHF, "525.00 EUR", "10.00 EUR"], ["USD", "1150.00 USD", "1054.50 EUR", "1069.50 EUR", "15.00 EUR"]],
        "25.00 EUR",
    ],
    "2024-04-25": [
        [[*CHF, "525.00 EUR", "10.00 EUR"], ["USD", "1000.00 USD", "918.00 EUR", "880.00 EUR", "-38.00 EUR"]],
        "-28.00 EUR",
    ],
}


@pytest.mark.parametrize("day", EXPOSURE)
def test_exposure(day: str) -> None:
    assert probe("exposure")[day] == EXPOSURE[day]


def test_revaluation_posts_and_takes_back() -> None:
    found = probe("revaluation")
    assert found["posted"] == [["CHF", "10.00 EUR"], ["USD", "15.00 EUR"]]
    assert found["entries"] == [
        ["2024-04-20", [["1290", "10.00 EUR"], ["7100", "-10.00 EUR"]]],
        ["2024-04-20", [["1290", "15.00 EUR"], ["7100", "-15.00 EUR"]]],
        ["2024-04-21", [["1290", "-10.00 EUR"], ["7100", "10.00 EUR"]]],
        ["2024-04-21", [["1290", "-15.00 EUR"], ["7100", "15.00 EUR"]]],
    ]
    assert found["until"] == {"1290": "25.00 EUR", "7100": "-25.00 EUR"}
    assert found["after"] == {"1290": "0.00 EUR", "7100": "0.00 EUR"}


def test_revaluation_leaves_a_sound_book() -> None:
    found = probe("revaluation")
    assert found["audit"] == []
    assert found["exposure"] == ["515.00 EUR", "1054.50 EUR"]


def test_a_day_is_revalued_once() -> None:
    found = probe("revaluation")
    assert "LedgerError" in found["again"].split()
    assert found["entries_after_again"] == 4


def test_a_closed_day_is_not_revalued() -> None:
    found = probe("closing")
    assert "ClosedPeriodError" in found["closed"].split()
    assert found["entries"] == 0


BOOK = book_of(
    [
        invoice_of("INV-0001", "Acme", "2024-03-05", ["1;1000.00;Z"], "USD"),
        invoice_of("INV-0002", "Acme", "2024-03-05", ["1;100.00;S"]),
    ],
    [
        entry_of("INV-0001", "2024-03-05", "1200 910.00", "4000 -910.00 Z"),
        entry_of("INV-0002", "2024-03-05", "1200 119.00", "4000 -100.00 S", "2200 -19.00 S"),
    ],
    rates=[["USD", "2024-01-02", "0.91"], ["USD", "2024-03-20", "0.93"]],
)


@pytest.fixture(scope="module")
def command_line() -> Iterator[Ledger]:
    """A book from before the change, with 1000 dollars and 119 euros open."""
    with ledger(BOOK) as candidate:
        yield candidate


def test_statement_command(command_line: Ledger) -> None:
    span = ("--period", "2024-03-02..2024-03-20")
    lines = command_line.ok("statement", "Acme", *span, "--in", "eur").lines
    assert lines[-1] == "Total 1049.00 EUR at the rates of 2024-03-20"
    assert [line for line in lines if line.startswith("Statement")] == [
        "Statement Acme 2024-03-02..2024-03-20 in EUR",
        "Statement Acme 2024-03-02..2024-03-20 in USD",
    ]
    command_line.refuses("statement", "Acme", *span, "--in", "GBP")


def test_exposure_command(command_line: Ledger) -> None:
    assert command_line.ok("exposure", "--as-of", "2024-03-20").lines == [
        "currency     open  carried   value  difference",
        "USD       1000.00   910.00  930.00       20.00",
        "Total                                    20.00",
    ]


def test_revalue_command(command_line: Ledger) -> None:
    assert command_line.ok("revalue", "--date", "2024-03-20").lines == ["USD: 20.00 EUR", "1 currencies revalued"]
    command_line.refuses("revalue", "--date", "2024-03-20")
    rows = command_line.ok("trial-balance", "--period", "2024-03-20..2024-03-20").cells[1:]
    assert rows == [
        ["1290", "Revaluation of receivables", "20.00", "0.00"],
        ["7100", "Unrealised exchange differences", "0.00", "20.00"],
    ]
    command_line.prints("ok", "check")
