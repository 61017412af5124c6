"""What a forge is asked for, and what can be in the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

_MARKER = re.compile(r"<!-- pytest-wfbench key=([A-Za-z0-9_./-]+) order=([0-9]{1,18}) -->\s*\Z")


class ForgeError(Exception):
    """The forge does not do what it should; the message names it and the remedy."""


class NotAllowed(ForgeError):
    """The token may read but not write here, as that of a fork's pull request; nothing is wrong with the sweep."""


class TooLong(ForgeError):
    """The forge takes no comment of this length."""


class Mark(NamedTuple):
    """The first line of a comment of ours: whose it is, and which of two is the newer."""

    key: str
    order: int


@dataclass(frozen=True)
class Comment:
    """A comment as the forge has it; ``author`` is whatever the forge knows accounts by."""

    id: int
    author: str
    body: str

    @property
    def mark(self) -> Mark | None:
        """Its marker, where it has one."""
        return mark_of(self.body)


class Forge(Protocol):
    """The comments of one pull request. Everything raises ForgeError."""

    def me(self) -> str:
        """Return the account of the token."""
        ...

    def comments(self) -> Iterator[Comment]:
        """Yield every comment of the pull request, page after page, oldest first."""
        ...

    def create(self, body: str) -> Comment:
        """Add a comment. Raises NotAllowed, TooLong."""
        ...

    def update(self, comment: Comment, body: str) -> Comment:
        """Replace a comment's text. Raises NotAllowed, TooLong."""
        ...

    def delete(self, comment: Comment) -> None:
        """Remove a comment of our own; one that is gone already is no error."""
        ...


def mark_of(body: str) -> Mark | None:
    """Return the marker in the first line of a text, or none."""
    found = _MARKER.match(body.partition("\n")[0])
    return Mark(found[1], int(found[2])) if found else None
