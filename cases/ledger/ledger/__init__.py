"""A small double-entry ledger: invoices, payments, VAT, exchange rates and the reports on them."""

from ledger.book import Book
from ledger.errors import LedgerError
from ledger.money import Currency, Money
from ledger.periods import Period

__all__ = ["Book", "Currency", "LedgerError", "Money", "Period"]
__version__ = "0.4.0"
