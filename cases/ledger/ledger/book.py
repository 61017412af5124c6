"""The book: one company's invoices, journal and rates, and the operations that change them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from ledger.accounts import Chart, default_chart
from ledger.discounts import EarlyPayment
from ledger.errors import ClosedPeriodError, NotFoundError, ValidationError
from ledger.fx import RateTable
from ledger.invoices import Invoice, InvoiceLine, Payment
from ledger.journal import Entry, Journal
from ledger.money import Currency, Money
from ledger.periods import Period
from ledger.posting import invoice_entry, payment_entry


class Book:
    """Everything that is kept about one company. An operation either happens whole or raises."""

    def __init__(self, base: Currency, chart: Chart | None = None) -> None:
        self.base = base
        self.chart = chart or default_chart()
        self.journal = Journal(base)
        self.rates = RateTable(base)
        self.invoices: dict[str, Invoice] = {}
        self.closed_until: date | None = None

    def invoice(self, number: str) -> Invoice:
        try:
            return self.invoices[number]
        except KeyError:
            raise NotFoundError(f"no invoice {number}") from None

    def invoices_of(self, customer: str) -> list[Invoice]:
        """A customer's invoices by date and number."""
        found = [invoice for invoice in self.invoices.values() if invoice.customer == customer]
        if not found:
            raise NotFoundError(f"no customer {customer}")
        return sorted(found, key=lambda invoice: (invoice.date, invoice.number))

    @property
    def customers(self) -> list[str]:
        return sorted({invoice.customer for invoice in self.invoices.values()})

    def add_invoice(
        self,
        customer: str,
        day: date,
        lines: Sequence[InvoiceLine],
        *,
        currency: Currency | None = None,
        terms: int = 30,
        early_payment: EarlyPayment | None = None,
    ) -> Invoice:
        """Issue the next invoice and post it."""
        number = f"INV-{len(self.invoices) + 1:04d}"
        invoice = Invoice(
            number, customer, day, currency or self.base, tuple(lines), terms, early_payment
        )
        self._post(invoice_entry(invoice, self.rates))
        self.invoices[number] = invoice
        return invoice

    def pay(self, number: str, amount: Money, day: date) -> Invoice:
        """Record a payment in the invoice's currency and post it."""
        invoice = self.invoice(number)
        if amount <= Money.zero(invoice.currency):
            raise ValidationError(f"a payment must be positive, not {amount}")
        if amount > invoice.open_amount():
            raise ValidationError(f"{amount} is more than the {invoice.open_amount()} open on {number}")
        if day < invoice.date:
            raise ValidationError(f"a payment on {day} is before invoice {number} of {invoice.date}")
        payment = Payment(day, amount)
        self._post(payment_entry(invoice, payment, self.journal, self.rates))
        invoice.payments.append(payment)
        return invoice

    def close(self, period: Period) -> None:
        """Refuse postings up to the end of a period from now on."""
        if self.closed_until is None or period.last > self.closed_until:
            self.closed_until = period.last

    def _post(self, entry: Entry) -> None:
        if self.closed_until is not None and entry.date <= self.closed_until:
            raise ClosedPeriodError(f"{entry.date} is closed; the books are open from the day after {self.closed_until}")
        for line in entry.lines:
            self.chart[line.account]
        self.journal.append(entry)
