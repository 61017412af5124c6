"""``wfbench comment``: the pull-request comment of a results directory, made again."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_wfbench.cli._results import derived, directory_argument, show, writing
from pytest_wfbench.derive import write_comment


@click.command("comment")
@directory_argument
@click.option("--key", help="Which comment of a pull request is updated in place.  [default: the CI workflow's name]")
def command(directory: Path, key: str | None) -> None:
    """Write comment.md of a results directory and print it.

    \b
    Example:
        wfbench comment results/latest --key smoke >> "$GITHUB_STEP_SUMMARY"
    """
    found = derived(directory)
    with writing(directory):
        show(write_comment(directory, found, key))
