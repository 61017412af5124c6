"""``wfbench usage``: a provider's token counts in the row's vocabulary."""

from __future__ import annotations

from typing import TextIO

import click

from pytest_wfbench.cli._exit import usage_errors
from pytest_wfbench.usage.normalise import UsageError, normalise_document


@click.group("usage")
def command() -> None:
    """Work with token counts."""


@command.command("normalise")
@click.option("--wire", required=True, help="Wire format: anthropic-messages, openai-responses or openai-chat.")
@click.argument("file", type=click.File("r", encoding="utf-8"))
def normalise(wire: str, file: TextIO) -> None:
    """Print the usage that a provider's document holds, as the row has it; `-` reads standard input.

    Unknown counts are null.

    \b
    Example:
        wfbench usage normalise --wire anthropic-messages response.json
    """
    with usage_errors(UsageError, ValueError):
        click.echo(normalise_document(wire, file.read()).model_dump_json(indent=1))
