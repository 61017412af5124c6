"""Posting rules: the journal entries that documents turn into.

Entries are in the base currency. A document in another currency is posted at the rate of its own
date. What a payment is worth on its day and what the receivable was carried at may then differ;
the difference goes to the account for exchange differences.
"""

from __future__ import annotations

from ledger.accounts import BANK, EXCHANGE_DIFFERENCES, RECEIVABLES, REVENUE, VAT_PAYABLE
from ledger.fx import RateTable
from ledger.invoices import Invoice, Payment
from ledger.journal import Entry, Journal, Line
from ledger.money import Money


def invoice_entry(invoice: Invoice, rates: RateTable) -> Entry:
    """Receivables to revenue and VAT, by tax code."""
    base = rates.base
    turnover = []
    for part in invoice.breakdown:
        net = rates.convert(part.net, base, invoice.date)
        tax = rates.convert(part.tax, base, invoice.date)
        turnover.append(Line(REVENUE, -net, part.code))
        if tax:
            turnover.append(Line(VAT_PAYABLE, -tax, part.code))
    claim = -Money.sum((line.amount for line in turnover), base)
    lines = (Line(RECEIVABLES, claim), *turnover)
    return Entry(invoice.date, invoice.number, f"Invoice to {invoice.customer}", lines)


def carrying_amount(invoice: Invoice, amount: Money, journal: Journal, rates: RateTable) -> Money:
    """What part of an invoice's receivable is carried at, in the base currency.

    The part that settles the invoice takes all that is left, so that no cent of rounding stays.
    """
    if amount == invoice.open_amount():
        return journal.balance(RECEIVABLES, reference=invoice.number)
    return rates.convert(amount, rates.base, invoice.date)


def payment_entry(invoice: Invoice, payment: Payment, journal: Journal, rates: RateTable) -> Entry:
    """Bank to receivables. Made before the payment is added to the invoice."""
    received = rates.convert(payment.amount, rates.base, payment.date)
    carried = carrying_amount(invoice, payment.amount, journal, rates)
    lines = [Line(BANK, received), Line(RECEIVABLES, -carried)]
    if received != carried:
        lines.append(Line(EXCHANGE_DIFFERENCES, carried - received))
    return Entry(payment.date, invoice.number, f"Payment from {invoice.customer}", tuple(lines))
