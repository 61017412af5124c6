"""Reports as plain text: columns padded with blanks, two blanks between them."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.aging import BUCKETS, AgingRow
from ledger.invoices import Invoice
from ledger.journal import Entry
from ledger.money import Money
from ledger.reports import TrialBalanceRow
from ledger.statement import Statement
from ledger.tax import TAX_CODES, TaxedAmount


def number(money: Money) -> str:
    """An amount without its currency."""
    return f"{money.amount:f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], numeric: int) -> str:
    """A table whose last ``numeric`` columns are set flush right."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    text_columns = len(header) - numeric
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if column < text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def invoice_list(invoices: Sequence[Invoice]) -> str:
    rows = [
        (
            invoice.number,
            str(invoice.date),
            invoice.customer,
            invoice.status,
            str(invoice.total),
            str(invoice.open_amount()),
        )
        for invoice in invoices
    ]
    return table(("number", "date", "customer", "status", "total", "open"), rows, 2)


def aging(rows: Sequence[AgingRow]) -> str:
    header = ("customer", *(label for label, _ in BUCKETS), "total")
    body = [(row.customer, *map(number, row.amounts), number(row.total)) for row in rows]
    return table(header, body, len(header) - 1)


def vat(parts: Sequence[TaxedAmount]) -> str:
    rows = [
        (part.code, f"{TAX_CODES[part.code].percent} %", number(part.net), number(part.tax))
        for part in parts
    ]
    return table(("code", "rate", "net", "tax"), rows, 2)


def trial_balance(rows: Sequence[TrialBalanceRow]) -> str:
    body = [
        (row.account.number, row.account.name, number(row.debit), number(row.credit)) for row in rows
    ]
    return table(("account", "name", "debit", "credit"), body, 2)


def statement(account: Statement) -> str:
    rows = [("", "", "Opening balance", "", number(account.opening))]
    rows += [
        (str(row.date), row.document, row.text, number(row.amount), number(row.balance))
        for row in account.rows
    ]
    rows.append(("", "", "Closing balance", "", number(account.closing)))
    header = ("date", "document", "text", "amount", "balance")
    title = f"Statement {account.customer} {account.period} in {account.closing.currency}"
    return f"{title}\n{table(header, rows, 2)}"


def journal(entries: Sequence[Entry]) -> str:
    rows = [
        (str(entry.date), entry.reference, entry.memo, line.account, number(line.debit), number(line.credit))
        for entry in entries
        for line in entry.lines
    ]
    return table(("date", "reference", "memo", "account", "debit", "credit"), rows, 2)
