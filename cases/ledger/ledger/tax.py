"""VAT: codes, the tax on a net amount, and the return for a period."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from ledger.accounts import REVENUE, VAT_PAYABLE
from ledger.errors import ValidationError
from ledger.journal import Journal
from ledger.money import Money
from ledger.periods import Period


@dataclass(frozen=True)
class TaxCode:
    """A VAT rate under the letter that invoices name it by."""

    code: str
    name: str
    percent: Decimal

    def on(self, net: Money) -> Money:
        """The tax on a net amount."""
        return net * (self.percent / 100)


TAX_CODES: dict[str, TaxCode] = {
    tax.code: tax
    for tax in (
        TaxCode("S", "standard", Decimal(19)),
        TaxCode("R", "reduced", Decimal(7)),
        TaxCode("Z", "zero-rated", Decimal(0)),
    )
}


def tax_code(code: str) -> TaxCode:
    """The tax of a code, in any case."""
    try:
        return TAX_CODES[code.upper()]
    except KeyError:
        raise ValidationError(f"unknown tax code {code!r}; known: {', '.join(TAX_CODES)}") from None


@dataclass(frozen=True)
class TaxedAmount:
    """A net amount and the tax on it, under one code."""

    code: str
    net: Money
    tax: Money

    @property
    def gross(self) -> Money:
        return self.net + self.tax


def vat_return(journal: Journal, period: Period) -> list[TaxedAmount]:
    """Turnover and VAT of a period by code, in the order of the codes; codes without any are left out."""
    net: dict[str, Money] = {}
    tax: dict[str, Money] = {}
    for entry in journal.within(period):
        for line in entry.lines:
            if line.tax_code is None:
                continue
            side = {REVENUE: net, VAT_PAYABLE: tax}[line.account]
            side[line.tax_code] = side.get(line.tax_code, Money.zero(journal.base)) - line.amount
    zero = Money.zero(journal.base)
    return [
        TaxedAmount(code, net.get(code, zero), tax.get(code, zero))
        for code in TAX_CODES
        if code in net or code in tax
    ]
