import unittest
from datetime import date

from helpers import sample_book
from ledger import render
from ledger.aging import aging_report, aging_totals, bucket
from ledger.money import Money
from ledger.periods import Period
from ledger.statement import build_statement


class AgingTest(unittest.TestCase):
    def test_buckets(self):
        days = (-3, 0, 1, 30, 31, 60, 61, 90, 91)
        self.assertEqual([bucket(count) for count in days], [0, 0, 1, 1, 2, 2, 3, 3, 4])

    def test_open_amounts_stand_in_their_bucket(self):
        book = sample_book()
        rows = aging_report(book, date(2024, 3, 1))
        self.assertEqual([row.customer for row in rows], ["Acme", "Bolt"])
        self.assertEqual([str(amount.amount) for amount in rows[0].amounts], ["0.00", "1440.21", "0.00", "0.00", "0.00"])
        self.assertEqual(str(rows[1].total), "1110.00 EUR")
        self.assertEqual(str(aging_totals(book, rows).total), "2550.21 EUR")

    def test_settled_customers_are_left_out(self):
        book = sample_book()
        book.pay("INV-0002", Money.of(1200, "USD"), date(2024, 2, 25))
        self.assertEqual([row.customer for row in aging_report(book, date(2024, 3, 1))], ["Acme"])


class StatementTest(unittest.TestCase):
    def test_a_statement_runs_from_opening_to_closing_balance(self):
        book = sample_book()
        book.pay("INV-0001", Money.of("500.00", "EUR"), date(2024, 2, 12))
        account = build_statement(book, "Acme", Period.parse("2024-02"))
        self.assertEqual(
            render.statement(account).splitlines(),
            [
                "Statement Acme 2024-02 in EUR",
                "date        document  text              amount  balance",
                "                      Opening balance           1033.23",
                "2024-02-05  INV-0003  Invoice           406.98  1440.21",
                "2024-02-12  INV-0001  Payment          -500.00   940.21",
                "                      Closing balance            940.21",
            ],
        )


if __name__ == "__main__":
    unittest.main()
