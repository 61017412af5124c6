"""The chart of accounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ledger.errors import UnknownAccountError

BANK = "1000"
RECEIVABLES = "1200"
VAT_PAYABLE = "2200"
REVENUE = "4000"
EXCHANGE_DIFFERENCES = "7000"


class AccountType(Enum):
    """What an account's balance means; it decides the side the balance normally stands on."""

    ASSET = "asset"
    LIABILITY = "liability"
    INCOME = "income"
    EXPENSE = "expense"

    @property
    def debit_normal(self) -> bool:
        return self in (AccountType.ASSET, AccountType.EXPENSE)


@dataclass(frozen=True)
class Account:
    number: str
    name: str
    type: AccountType


class Chart:
    """Accounts by number, in ascending order."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        self._accounts = {account.number: account for account in accounts}

    def __getitem__(self, number: str) -> Account:
        try:
            return self._accounts[number]
        except KeyError:
            raise UnknownAccountError(f"no account {number} in the chart") from None

    def __contains__(self, number: object) -> bool:
        return number in self._accounts

    def __iter__(self) -> Iterator[Account]:
        return iter(sorted(self._accounts.values(), key=lambda account: account.number))


def default_chart() -> Chart:
    """The five accounts that the posting rules need."""
    return Chart(
        [
            Account(BANK, "Bank", AccountType.ASSET),
            Account(RECEIVABLES, "Receivables", AccountType.ASSET),
            Account(VAT_PAYABLE, "VAT payable", AccountType.LIABILITY),
            Account(REVENUE, "Revenue", AccountType.INCOME),
            Account(EXCHANGE_DIFFERENCES, "Exchange differences", AccountType.EXPENSE),
        ]
    )
