import unittest
from datetime import date
from decimal import Decimal

from helpers import EUR, USD, sample_book
from ledger.accounts import BANK, EXCHANGE_DIFFERENCES, RECEIVABLES, REVENUE, VAT_PAYABLE
from ledger.errors import ClosedPeriodError, MissingRateError, UnbalancedEntryError
from ledger.fx import RateTable
from ledger.journal import Entry, Line
from ledger.money import Money
from ledger.periods import Period
from ledger.reports import trial_balance
from ledger.tax import vat_return
from ledger.validation import audit


class PostingTest(unittest.TestCase):
    def setUp(self):
        self.book = sample_book()

    def balance(self, account):
        return str(self.book.journal.balance(account))

    def test_invoices_are_posted_by_tax_code(self):
        first = next(iter(self.book.journal))
        self.assertEqual(
            [(one.account, str(one.amount), one.tax_code) for one in first.lines],
            [
                (RECEIVABLES, "1033.23 EUR", None),
                (REVENUE, "-760.00 EUR", "S"),
                (VAT_PAYABLE, "-144.40 EUR", "S"),
                (REVENUE, "-120.40 EUR", "R"),
                (VAT_PAYABLE, "-8.43 EUR", "R"),
            ],
        )

    def test_a_foreign_payment_leaves_an_exchange_difference(self):
        self.book.pay("INV-0002", Money.of("1200.00", "USD"), date(2024, 2, 25))
        self.assertEqual(self.balance(BANK), "1110.00 EUR")
        self.assertEqual(self.balance(EXCHANGE_DIFFERENCES), "-14.16 EUR")
        self.assertEqual(audit(self.book), [])

    def test_an_unbalanced_entry_cannot_be_made(self):
        lines = (Line(BANK, Money.of(2, "EUR")), Line(REVENUE, Money.of(-1, "EUR")))
        with self.assertRaises(UnbalancedEntryError):
            Entry(date(2024, 1, 1), "X", "", lines)

    def test_closed_days_take_no_postings(self):
        self.book.close(Period.parse("2024-01-01..2024-02-10"))
        with self.assertRaises(ClosedPeriodError):
            self.book.pay("INV-0001", Money.of(1, "EUR"), date(2024, 2, 10))
        self.assertEqual(str(self.book.invoice("INV-0001").paid()), "0.00 EUR")
        self.book.pay("INV-0001", Money.of(1, "EUR"), date(2024, 2, 11))

    def test_the_trial_balance_balances(self):
        rows = trial_balance(self.book)
        self.assertEqual([row.account.number for row in rows], [RECEIVABLES, VAT_PAYABLE, REVENUE])
        zero = Money.zero(EUR)
        self.assertEqual(sum((row.debit for row in rows), zero), sum((row.credit for row in rows), zero))

    def test_the_vat_return_is_by_code(self):
        parts = vat_return(self.book.journal, Period.parse("2024-01"))
        self.assertEqual(
            [(part.code, str(part.net), str(part.tax)) for part in parts],
            [
                ("S", "760.00 EUR", "144.40 EUR"),
                ("R", "120.40 EUR", "8.43 EUR"),
                ("Z", "1095.84 EUR", "0.00 EUR"),
            ],
        )

    def test_a_sound_book_passes_the_audit(self):
        self.assertEqual(audit(self.book), [])


class RateTest(unittest.TestCase):
    def setUp(self):
        self.rates = RateTable(EUR)
        self.rates.add(USD, date(2024, 1, 10), Decimal("0.91"))
        self.rates.add(USD, date(2024, 1, 5), Decimal("0.90"))

    def test_the_newest_rate_counts(self):
        self.assertEqual(self.rates.value(USD, date(2024, 1, 9)), Decimal("0.90"))
        self.assertEqual(self.rates.value(USD, date(2024, 1, 10)), Decimal("0.91"))
        with self.assertRaises(MissingRateError):
            self.rates.value(USD, date(2024, 1, 4))

    def test_conversion_goes_both_ways(self):
        day = date(2024, 1, 7)
        self.assertEqual(str(self.rates.convert(Money.of(10, "USD"), EUR, day)), "9.00 EUR")
        self.assertEqual(str(self.rates.convert(Money.of(9, "EUR"), USD, day)), "10.00 USD")


if __name__ == "__main__":
    unittest.main()
