import unittest
from decimal import Decimal

from ledger.errors import CurrencyMismatchError, UnknownCurrencyError
from ledger.money import Money, currency


class MoneyTest(unittest.TestCase):
    def test_an_amount_is_held_in_whole_minor_units(self):
        self.assertEqual(str(Money.of("12.344", "EUR")), "12.34 EUR")
        self.assertEqual(str(Money.of("12.346", "EUR")), "12.35 EUR")
        self.assertEqual(str(Money.of("1999.7", "JPY")), "2000 JPY")
        self.assertEqual(str(Money.of("0.12345", "KWD")), "0.123 KWD")

    def test_arithmetic_keeps_the_currency(self):
        self.assertEqual(Money.of(1, "EUR") + Money.of("0.50", "EUR"), Money.of("1.50", "EUR"))
        self.assertEqual(-Money.of("0.50", "EUR") * 3, Money.of("-1.50", "EUR"))
        self.assertLess(Money.of(1, "EUR"), Money.of(2, "EUR"))

    def test_currencies_do_not_mix(self):
        with self.assertRaises(CurrencyMismatchError):
            Money.of(1, "EUR") + Money.of(1, "USD")

    def test_there_is_no_negative_zero(self):
        self.assertEqual(str(Money.of("-0.001", "EUR")), "0.00 EUR")

    def test_a_currency_is_found_in_any_case(self):
        self.assertEqual(currency("eur").code, "EUR")
        with self.assertRaises(UnknownCurrencyError):
            currency("XXX")

    def test_allocated_parts_add_up(self):
        parts = Money.of("100.00", "EUR").allocate([Decimal(1)] * 3)
        self.assertEqual([str(part.amount) for part in parts], ["33.34", "33.33", "33.33"])

    def test_allocation_favours_the_largest_remainder(self):
        parts = Money.of("10.00", "EUR").allocate([Decimal(1), Decimal(2), Decimal(4)])
        self.assertEqual([str(part.amount) for part in parts], ["1.43", "2.86", "5.71"])

    def test_allocation_needs_a_positive_weight(self):
        with self.assertRaises(ValueError):
            Money.of(1, "EUR").allocate([Decimal(0)])


if __name__ == "__main__":
    unittest.main()
