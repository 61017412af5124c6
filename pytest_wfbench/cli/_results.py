"""What the verbs over a results directory share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pytest_wfbench.cli._exit import CliError, usage_errors
from pytest_wfbench.derive import Derived, derive
from pytest_wfbench.evidence.store import EvidenceError

directory_argument = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def derived(directory: Path) -> Derived:
    """Compute everything from a results directory; an unreadable one is a usage error."""
    with usage_errors(EvidenceError):
        return derive(directory)


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """A directory that cannot be written is a usage error."""
    try:
        yield
    except OSError as error:
        remedy = "Copy the results directory to where you may write"
        raise CliError(f"{error.filename or directory}: {error.strerror or error}. {remedy}") from error


def show(text: str) -> None:
    """Print text that ends its own last line."""
    click.echo(text, nl=False)
