"""``wfbench report``: the report of a results directory, made again."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_wfbench.cli._results import derived, directory_argument, json_option, show, writing
from pytest_wfbench.derive import write_report
from pytest_wfbench.report.plain import as_json as plain_json


@click.command("report")
@directory_argument
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Write report.md of a results directory and print it.

    The exit status is 0 once it is written; the sweep's own is `verdict.exit_status` of the JSON.

    \b
    Example:
        wfbench report results/latest
        wfbench report results/latest --json | jq .verdict.word
    """
    found = derived(directory)
    with writing(directory):
        text = write_report(directory, found)
    show(plain_json(found.summary) if as_json else text)
