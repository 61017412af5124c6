"""Reports on the whole book that need no more than its journal."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.accounts import Account
from ledger.book import Book
from ledger.money import Money
from ledger.periods import Period


@dataclass(frozen=True)
class TrialBalanceRow:
    """An account with its balance on the side where it stands."""

    account: Account
    debit: Money
    credit: Money


def trial_balance(book: Book, period: Period | None = None) -> list[TrialBalanceRow]:
    """The movements of every account in a period (or of all time); untouched accounts are left out."""
    zero = Money.zero(book.base)
    rows = []
    for account in book.chart:
        balance = book.journal.balance(account.number, period)
        if balance:
            rows.append(TrialBalanceRow(account, max(balance, zero), max(-balance, zero)))
    return rows
