"""The command line: ``python3 -m ledger [--book FILE] COMMAND ...``.

Results go to stdout. A :class:`~ledger.errors.LedgerError` is one line on stderr and exit status 2,
and leaves the book's file as it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ledger import csvio, render, storage
from ledger.aging import aging_report, aging_totals
from ledger.book import Book
from ledger.discounts import EarlyPayment
from ledger.errors import LedgerError, ValidationError
from ledger.fx import RateTable
from ledger.money import Money, currency
from ledger.periods import Period
from ledger.reports import trial_balance
from ledger.statement import build_statement
from ledger.tax import tax_code, vat_return
from ledger.validation import audit, parse_amount, parse_date, parse_decimal, parse_line, parse_name

Command = Callable[[argparse.Namespace], None]


def _load(args: argparse.Namespace) -> Book:
    return storage.load(args.book)


def cmd_init(args: argparse.Namespace) -> None:
    if args.book.exists():
        raise ValidationError(f"{args.book} exists already")
    storage.save(Book(currency(args.base)), args.book)
    print(f"{args.book.name}: new book in {args.base.upper()}")


def cmd_round(args: argparse.Namespace) -> None:
    print(Money(parse_decimal(args.amount), currency(args.currency)))


def cmd_tax(args: argparse.Namespace) -> None:
    net = parse_amount(args.amount, currency(args.currency))
    tax = tax_code(args.code).on(net)
    print(f"net {net}, VAT {tax}, gross {net + tax}")


def cmd_convert(args: argparse.Namespace) -> None:
    source, target = currency(args.source), currency(args.target)
    day = parse_date("1970-01-01")
    rates = RateTable(target)
    rates.add(source, day, parse_decimal(args.rate))
    print(rates.convert(parse_amount(args.amount, source), target, day))


def cmd_rate(args: argparse.Namespace) -> None:
    book = _load(args)
    book.rates.add(currency(args.currency), parse_date(args.date), parse_decimal(args.value))
    storage.save(book, args.book)
    print(f"1 {args.currency.upper()} = {args.value} {book.base} from {args.date}")


def cmd_invoice(args: argparse.Namespace) -> None:
    book = _load(args)
    unit_of = currency(args.currency) if args.currency else book.base
    early = None
    if args.early:
        percent, _, days = args.early.partition("/")
        early = EarlyPayment(parse_decimal(percent), int(parse_decimal(days)))
    invoice = book.add_invoice(
        parse_name(args.customer),
        parse_date(args.date),
        [parse_line(text, unit_of) for text in args.line],
        currency=unit_of,
        terms=args.terms,
        early_payment=early,
    )
    storage.save(book, args.book)
    print(f"{invoice.number} {invoice.customer}: {invoice.total}, due {invoice.due}")


def cmd_pay(args: argparse.Namespace) -> None:
    book = _load(args)
    amount = parse_amount(args.amount, book.invoice(args.number).currency)
    invoice = book.pay(args.number, amount, parse_date(args.date))
    storage.save(book, args.book)
    print(f"{invoice.number}: {amount} paid, {invoice.open_amount()} open")


def cmd_settlement(args: argparse.Namespace) -> None:
    print(_load(args).invoice(args.number).settlement(parse_date(args.date)))


def cmd_invoices(args: argparse.Namespace) -> None:
    print(render.invoice_list(list(_load(args).invoices.values())))


def cmd_aging(args: argparse.Namespace) -> None:
    book = _load(args)
    rows = aging_report(book, parse_date(args.as_of))
    print(render.aging([*rows, aging_totals(book, rows)]))


def cmd_vat(args: argparse.Namespace) -> None:
    print(render.vat(vat_return(_load(args).journal, Period.parse(args.period))))


def cmd_trial_balance(args: argparse.Namespace) -> None:
    period = Period.parse(args.period) if args.period else None
    print(render.trial_balance(trial_balance(_load(args), period)))


def cmd_statement(args: argparse.Namespace) -> None:
    account = build_statement(_load(args), parse_name(args.customer), Period.parse(args.period))
    print(render.statement(account))


def cmd_journal(args: argparse.Namespace) -> None:
    period = Period.parse(args.period) if args.period else None
    entries = _load(args).journal.within(period)
    if args.csv:
        csvio.write_journal(entries, sys.stdout)
    else:
        print(render.journal(entries))


def cmd_import(args: argparse.Namespace) -> None:
    book = _load(args)
    with args.file.open(encoding="utf-8", newline="") as source:
        rows = csvio.read_invoices(source)
    for row in rows:
        book.add_invoice(row.customer, row.date, row.lines, currency=row.currency, terms=row.terms)
    storage.save(book, args.book)
    print(f"{len(rows)} invoices imported")


def cmd_close(args: argparse.Namespace) -> None:
    book = _load(args)
    period = Period.parse(args.period)
    book.close(period)
    storage.save(book, args.book)
    print(f"{period} is closed")


def cmd_check(args: argparse.Namespace) -> None:
    problems = audit(_load(args))
    if problems:
        raise LedgerError("; ".join(problems))
    print("ok")


def parser() -> argparse.ArgumentParser:
    """The argument parser; each command stores its function under ``run``."""
    top = argparse.ArgumentParser(prog="ledger", description="Invoices, payments, VAT and reports.")
    top.add_argument("--book", type=Path, default=Path("ledger.json"), help="the book's file")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Command, help: str, *positional: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        sub.set_defaults(run=run)
        for argument in positional:
            sub.add_argument(argument)
        return sub

    init = command("init", cmd_init, "make a new book")
    init.add_argument("--base", default="EUR", help="its base currency")
    command("round", cmd_round, "round a number to an amount", "amount", "currency")
    command("tax", cmd_tax, "VAT on a net amount", "amount", "currency", "code")
    convert = command("convert", cmd_convert, "convert an amount", "amount", "source", "target")
    convert.add_argument("--rate", required=True, help="target units for one source unit")
    command("rate", cmd_rate, "record an exchange rate", "currency", "date", "value")

    invoice = command("invoice", cmd_invoice, "issue an invoice", "customer")
    invoice.add_argument("--date", required=True)
    invoice.add_argument(
        "--line", action="append", required=True, metavar="TEXT;QTY;PRICE;CODE[;DISCOUNT]"
    )
    invoice.add_argument("--currency", help="default: the base currency")
    invoice.add_argument("--terms", type=int, default=30, help="days until it is due")
    invoice.add_argument("--early", metavar="PERCENT/DAYS", help="discount for paying early")

    pay = command("pay", cmd_pay, "record a payment", "number", "amount")
    pay.add_argument("--date", required=True)
    settlement = command("settlement", cmd_settlement, "what settles an invoice", "number")
    settlement.add_argument("--date", required=True)
    command("invoices", cmd_invoices, "list the invoices")
    aging = command("aging", cmd_aging, "open amounts by days overdue")
    aging.add_argument("--as-of", required=True, metavar="DATE")
    vat = command("vat", cmd_vat, "the VAT return")
    vat.add_argument("--period", required=True)
    balance = command("trial-balance", cmd_trial_balance, "movements of the accounts")
    balance.add_argument("--period")
    statement = command("statement", cmd_statement, "a customer's statement", "customer")
    statement.add_argument("--period", required=True)
    journal = command("journal", cmd_journal, "list the journal")
    journal.add_argument("--period")
    journal.add_argument("--csv", action="store_true")
    importer = command("import", cmd_import, "issue the invoices of a CSV file")
    importer.add_argument("file", type=Path)
    command("close", cmd_close, "close a period", "period")
    command("check", cmd_check, "audit the book")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 2 with a line on stderr."""
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except (LedgerError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
