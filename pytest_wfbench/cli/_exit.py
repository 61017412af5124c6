"""How a verb ends: pytest's exit statuses, and errors of one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import click

FAILED = 1
INTERRUPTED = 2
USAGE_ERROR = 4
NOTHING = 5

_T = TypeVar("_T")


class CliError(Exception):
    """Ends a verb: one line with the remedy, and the exit status."""

    def __init__(self, message: str, status: int = USAGE_ERROR) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def usage_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds, whose messages are written for the user, into usage errors."""
    try:
        yield
    except kinds as error:
        raise CliError(str(error)) from error


def end(status: int) -> None:
    """End the verb with a status."""
    click.get_current_context().exit(status)
