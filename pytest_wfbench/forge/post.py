"""One comment, kept up to date: found by its marker and author, never overwritten by an older run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from pytest_wfbench.forge.api import Comment, Forge, ForgeError, Mark, TooLong, mark_of

SIZES = (60_000, 30_000, 10_000, 3_000)
CHECKS = 3

What = Literal["posted", "updated", "unchanged", "newer"]


class Posted(NamedTuple):
    """What was done. ``newer``: a later run's comment stands, and nothing was written."""

    what: What
    comment: Comment


def post(forge: Forge, render: Callable[[int], str]) -> Posted:
    """Post a comment or update the one that is there; ``render`` writes it in at most so many bytes.

    Two runs may do so at once: whoever finds a comment of the same key beside its own keeps the oldest of them, with
    the text of the highest order.

    Raises:
        NotAllowed: when the token may not write.
        ForgeError: when the forge does not answer, or takes the comment in no size.
    """
    me = forge.me()
    for size in SIZES:
        body = render(size)
        mark = mark_of(body)
        if mark is None:
            raise ForgeError("the comment has no marker line, so it could never be found again")
        try:
            return _settled(forge, me, mark, body, _write(forge, me, mark, body))
        except TooLong as error:
            refusal = error
    raise ForgeError(f"the forge takes the comment in no size: {refusal}")


def _write(forge: Forge, me: str, mark: Mark, body: str) -> Posted:
    there = _ours(forge, me, mark.key)
    if not there:
        return Posted("posted", forge.create(body))
    return _replace(forge, there[0], mark, body)


def _replace(forge: Forge, comment: Comment, mark: Mark, body: str) -> Posted:
    standing = comment.mark
    if standing is not None and standing.order > mark.order:
        return Posted("newer", comment)
    if _plain(comment.body) == _plain(body):
        return Posted("unchanged", comment)
    return Posted("updated", forge.update(comment, body))


def _settled(forge: Forge, me: str, mark: Mark, body: str, done: Posted) -> Posted:
    """Look again after a write: another run may have written meanwhile."""
    for _ in range(CHECKS):
        if done.what not in ("posted", "updated"):
            break
        there = _ours(forge, me, mark.key)
        first = there[0] if there else done.comment
        if first.id != done.comment.id:
            forge.delete(done.comment)
        elif _plain(first.body) == _plain(body):
            break
        again = _replace(forge, first, mark, body)
        done = again if again.what != "unchanged" else Posted(done.what, first)
        if again.what == "unchanged":
            break
    return done


def _ours(forge: Forge, me: str, key: str) -> list[Comment]:
    found = [c for c in forge.comments() if c.author == me and (mark := c.mark) is not None and mark.key == key]
    return sorted(found, key=lambda comment: comment.id)


def _plain(body: str) -> str:
    """Forges change line ends and trailing space."""
    return "\n".join(line.rstrip() for line in body.splitlines()).strip()
