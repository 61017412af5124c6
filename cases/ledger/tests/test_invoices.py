import unittest
from datetime import date
from decimal import Decimal

from helpers import EUR, line, sample_book
from ledger.book import Book
from ledger.discounts import EarlyPayment, percent_off
from ledger.errors import NotFoundError, ValidationError
from ledger.invoices import InvoiceLine
from ledger.money import Money


class InvoiceTest(unittest.TestCase):
    def test_tax_is_computed_once_per_code(self):
        book = Book(EUR)
        invoice = book.add_invoice("Acme", date(2024, 3, 1), [line("10.03"), line("10.03"), line("5.00", "R")])
        self.assertEqual(
            [(part.code, str(part.net), str(part.tax)) for part in invoice.breakdown],
            [("S", "20.06 EUR", "3.81 EUR"), ("R", "5.00 EUR", "0.35 EUR")],
        )
        self.assertEqual(str(invoice.total), "29.22 EUR")

    def test_a_line_discount_reduces_the_net(self):
        discounted = InvoiceLine("Work", Decimal(4), Money.of("95.00", "EUR"), "S", Decimal(10))
        self.assertEqual(str(discounted.net), "342.00 EUR")
        with self.assertRaises(ValidationError):
            percent_off(Money.of(1, "EUR"), Decimal(101))

    def test_numbers_run_on(self):
        self.assertEqual(list(sample_book().invoices), ["INV-0001", "INV-0002", "INV-0003"])

    def test_payments_reduce_what_is_open(self):
        book = sample_book()
        invoice = book.invoice("INV-0001")
        self.assertEqual(invoice.status, "open")
        book.pay("INV-0001", Money.of("33.23", "EUR"), date(2024, 2, 1))
        self.assertEqual(invoice.status, "partly paid")
        self.assertEqual(str(invoice.open_amount()), "1000.00 EUR")
        self.assertEqual(str(invoice.open_amount(date(2024, 1, 31))), "1033.23 EUR")
        self.assertEqual(str(invoice.open_amount(date(2024, 1, 1))), "0.00 EUR")
        book.pay("INV-0001", Money.of("1000.00", "EUR"), date(2024, 2, 2))
        self.assertEqual(invoice.status, "paid")

    def test_unusable_payments_are_refused(self):
        book = sample_book()
        for amount, day in (("1033.24", date(2024, 2, 1)), ("0", date(2024, 2, 1)), ("1", date(2024, 1, 14))):
            with self.subTest(amount), self.assertRaises(ValidationError):
                book.pay("INV-0001", Money.of(amount, "EUR"), day)
        with self.assertRaises(NotFoundError):
            book.pay("INV-0009", Money.of(1, "EUR"), date(2024, 2, 1))

    def test_early_payment_settles_for_less(self):
        book = Book(EUR)
        invoice = book.add_invoice(
            "Acme", date(2024, 3, 1), [line("100.00")], early_payment=EarlyPayment(Decimal(2), 10)
        )
        self.assertEqual(str(invoice.settlement(date(2024, 3, 11))), "116.62 EUR")
        self.assertEqual(str(invoice.settlement(date(2024, 3, 12))), "119.00 EUR")

    def test_an_invoice_must_claim_something(self):
        for lines in ([], [line("0.00")]):
            with self.subTest(lines), self.assertRaises(ValidationError):
                Book(EUR).add_invoice("Acme", date(2024, 3, 1), lines)


if __name__ == "__main__":
    unittest.main()
