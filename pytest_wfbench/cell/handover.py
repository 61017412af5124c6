"""What a session hands to the next one: exactly one plan, of a kind that a prompt can name."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pytest_wfbench.workspace.churn import Change

PLAN_BYTES = 1 << 20
NAME_LENGTH = 200
_REGULAR = frozenset({"100644", "100755"})


class InvalidPlan(Exception):
    """The hand-over is not valid; the message says why, in one line."""


def plan_of(change: Change, pattern: str) -> str:
    """Return the path of the one file that a session was to write.

    The path goes into the next session's prompt as it is, so it must be plain text in one line. What is in the file is
    for that session alone to read.

    Raises:
        InvalidPlan: when it is not one new or changed regular file of 1 byte to 1 MiB, with a printable name of at most
            200 characters.
    """
    matching = [path for path in change.paths if fnmatchcase(path, pattern)]
    others = len(change.paths) - len(matching)
    if len(matching) != 1 or others:
        found = f"found {len(matching)}, and {others} other changed files"
        raise InvalidPlan(f"expected exactly one new {pattern}, {found}")
    (path,) = matching
    if not path.isprintable() or len(path) > NAME_LENGTH:
        raise InvalidPlan("the name of the plan is not plain text, or is too long")
    if change.only is None:
        raise InvalidPlan("the plan was removed")
    if change.only.mode not in _REGULAR:
        raise InvalidPlan("the plan is not a regular file")
    if not 0 < change.only.size <= PLAN_BYTES:
        raise InvalidPlan(f"the plan has {change.only.size:,} bytes, not 1 to {PLAN_BYTES:,}")
    return path
