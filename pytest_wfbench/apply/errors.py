"""Why nothing is applied, or not all of it."""

from __future__ import annotations


class Refused(Exception):
    """What was asked for is not done, and nothing was touched; the message is for the user."""


class Stopped(Exception):
    """A signal asked for the end."""


class Faulted(Exception):
    """Something came in between, and all that could be was undone: the message says what, ``left`` what could not."""

    def __init__(self, message: str, left: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.left = left
