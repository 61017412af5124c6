"""Journal entries, and the journal that keeps them in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from ledger.errors import UnbalancedEntryError
from ledger.money import Currency, Money
from ledger.periods import Period


@dataclass(frozen=True)
class Line:
    """One side of an entry, in the book's base currency. A debit is positive, a credit negative.

    ``tax_code`` marks the lines (revenue and VAT) that a VAT return is made of.
    """

    account: str
    amount: Money
    tax_code: str | None = None

    @property
    def debit(self) -> Money:
        return max(self.amount, Money.zero(self.amount.currency))

    @property
    def credit(self) -> Money:
        return max(-self.amount, Money.zero(self.amount.currency))


@dataclass(frozen=True)
class Entry:
    """A dated, balanced set of lines; ``reference`` is the document that it belongs to."""

    date: date
    reference: str
    memo: str
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        if not self.lines:
            raise UnbalancedEntryError(f"entry {self.reference}: no lines")
        off = Money.sum((line.amount for line in self.lines), self.lines[0].amount.currency)
        if off:
            raise UnbalancedEntryError(f"entry {self.reference}: debits exceed credits by {off}")


class Journal:
    """Entries in order of posting."""

    def __init__(self, base: Currency) -> None:
        self.base = base
        self._entries: list[Entry] = []

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def within(self, period: Period | None) -> list[Entry]:
        """Entries of a period (of all time if there is none), by date, then in order of posting."""
        chosen = [entry for entry in self._entries if period is None or entry.date in period]
        return sorted(chosen, key=lambda entry: entry.date)

    def balance(self, account: str, period: Period | None = None, reference: str | None = None) -> Money:
        """Debits less credits of an account, of one document's entries if a reference is given."""
        return Money.sum(
            (
                line.amount
                for entry in self.within(period)
                if reference is None or entry.reference == reference
                for line in entry.lines
                if line.account == account
            ),
            self.base,
        )
