"""``wfbench trace``: the traces of a results directory, sent to an OTLP receiver."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pytest_wfbench.cli._exit import FAILED, CliError, usage_errors
from pytest_wfbench.cli._results import directory_argument
from pytest_wfbench.evidence.store import EvidenceError, read_sweep
from pytest_wfbench.traces.send import BadEndpoint, NotSent, send_traces
from pytest_wfbench.traces.spans import cell_traces


@click.command("trace")
@directory_argument
@click.option(
    "--otlp-endpoint", "endpoint", required=True, metavar="URL", help="The receiver; /v1/traces is added once."
)
def command(directory: Path, endpoint: str) -> None:
    """Send a trace of each cell: sessions, model calls with their tokens, tool calls.

    No prompt, answer, argument or output is sent. Headers that the receiver wants, such as a key, are taken from
    OTEL_EXPORTER_OTLP_HEADERS. Sent twice, spans have the same ids.

    \b
    Example:
        wfbench trace results/latest --otlp-endpoint http://127.0.0.1:4318
    """
    with usage_errors(EvidenceError, BadEndpoint):
        sweep = read_sweep(directory)
        try:
            sent = send_traces(cell_traces(directory), sweep.sweep_id, endpoint, os.environ)
        except NotSent as error:
            raise CliError(str(error), FAILED) from error
    click.echo(f"sent {sent.spans} spans of {sent.cells} cells to {endpoint}")
