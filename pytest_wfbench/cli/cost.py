"""``wfbench cost``: what a finished sweep costs by a price table."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pytest_wfbench.cli._exit import usage_errors
from pytest_wfbench.cli._results import directory_argument, json_option, show
from pytest_wfbench.evidence.store import EvidenceError, read_rows, read_sweep
from pytest_wfbench.evidence.usage_log import read_events
from pytest_wfbench.report.escape import one_line
from pytest_wfbench.report.words import dollars, plural
from pytest_wfbench.usage.normalise import UsageError
from pytest_wfbench.usage.prices import BadPrices, PriceTable
from pytest_wfbench.usage.reprice import Bill, open_calls_by_cell, reprice

NAME = 200


@click.command("cost")
@directory_argument
@click.option("--prices", metavar="FILE", type=click.Path(path_type=Path), help="Price table in LiteLLM's schema.")
@json_option
def command(directory: Path, prices: Path | None, as_json: bool) -> None:
    """Price a finished sweep again, by the bundled table or another one; nothing is written.

    Tokens are those of usage.jsonl, as the provider counted them. What cannot be told is a dash, never 0.

    \b
    Example:
        wfbench cost results/latest
        wfbench cost results/latest --prices prices.json --json
    """
    with usage_errors(EvidenceError, UsageError, BadPrices):
        sweep, rows, log = read_sweep(directory), read_rows(directory), read_events(directory)
        open_cells = open_calls_by_cell(call.cell_id for call in sweep.open_calls)
        bill = reprice(rows.rows, log.events, open_cells, PriceTable.load(prices))
    for torn in filter(None, (rows.torn, log.torn)):
        click.echo(f"wfbench: {torn}", err=True)
    show(_plain(bill) if as_json else _told(bill))


def _plain(bill: Bill) -> str:
    lines = [line._asdict() for line in bill.lines]
    return json.dumps({"price_table": bill.table, "lines": lines, "unpriced": bill.unpriced}, indent=1) + "\n"


def _told(bill: Bill) -> str:
    rows = [("arm", "subject", "cells", "recorded", "by the table")]
    rows += [
        (one_line(line.arm, NAME), one_line(line.subject, NAME), str(line.cells), dollars(line.recorded),
         dollars(line.repriced))
        for line in bill.lines
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    texts = [
        "  ".join(cell.ljust(width) if column < 2 else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]  # fmt: skip
    unknown = sum(line.unknown for line in bill.lines)
    if unknown:
        texts.append(f"unknown for {plural(unknown, 'cell')}: usage incomplete, or a model without a price")
    if bill.unpriced:
        unpriced = one_line(", ".join(bill.unpriced), 2000)
        texts.append(f"no price in the table: {unpriced}; name a table that has it with --prices")
    return "\n".join([*texts, f"price table {bill.table}"]) + "\n"
