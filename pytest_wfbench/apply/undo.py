"""Back to what was, in reverse and as often as need be: of a file that somebody else changed nothing is touched."""

from __future__ import annotations

import os
from contextlib import suppress

from pytest_wfbench.apply.errors import Refused
from pytest_wfbench.apply.journal import Change, Journal
from pytest_wfbench.apply.lease import InUse, await_writers
from pytest_wfbench.apply.places import Place, Root
from pytest_wfbench.apply.swap import Moved, Swap, settle, swap


def undo_all(root: Root, journal: Journal, swapping: Swap = swap, *, final: bool = False) -> tuple[str, ...]:
    """Undo an apply that is not done, and remove its journal where nothing is left to say.

    With ``final`` the old bytes of a file that somebody changed since are removed: the repository's history has them.

    Returns:
        a sentence for each file that could not be put back.
    """
    left = tuple(
        told for change in reversed(journal.plan.changes) if (told := _tried(root, journal, change, swapping, final))
    )
    for directory in reversed(journal.plan.directories):
        root.remove_directory(directory)
    if not left:
        with suppress(OSError):
            journal.remove(root)
    return left


def _tried(root: Root, journal: Journal, change: Change, swapping: Swap, final: bool) -> str | None:
    try:
        place = root.place(change.path)
        staged = journal.staged(place)
        journal.partial(place).remove()
        if change.base is None:
            _remove(place, staged, change)
            return None
        between = settle(place, staged, change.base)
        told = _back(place, staged, change, change.base, swapping, final)
        return _kept(change, between) if between is not None else told
    except Refused as error:
        nothing_there = isinstance(error.__cause__, FileNotFoundError) and (final or change.base is None)
        return None if nothing_there else f"{error}."
    except (OSError, Moved) as error:
        told = error.strerror if isinstance(error, OSError) else "it was replaced meanwhile"
        return f"{change.path} could not be put back: {told}."


def is_gone(root: Root, change: Change) -> bool:
    """Whether the directory of a file is no longer there; one that is reached by a link is not gone."""
    try:
        root.place(change.path)
    except Refused as error:
        return isinstance(error.__cause__, FileNotFoundError)
    return False


def _kept(change: Change, place: Place) -> str:
    return f"{change.path} was edited meanwhile and is kept as it is; what was there before is {place.shown}."


def _back(place: Place, staged: Place, change: Change, base: str, swapping: Swap, final: bool) -> str | None:
    now, kept = place.read(), staged.read()
    if kept is None:
        return None
    if kept.digest == change.new:
        staged.remove()
        return None
    if now is not None and now.digest == change.new:
        swapping(place, staged)
        if _nobodys(staged, change):
            staged.remove()
            place.sync()
            return None
        swapping(place, staged)
    if final and kept.digest == base:
        staged.remove()
        return None
    return _kept(change, staged)


def _nobodys(staged: Place, change: Change) -> bool:
    """Whether what was taken back is still what was put there, and nobody is writing to it."""
    try:
        await_writers(staged)
    except InUse:
        return False
    back = staged.read()
    return back is not None and back.digest == change.new


def _remove(place: Place, staged: Place, change: Change) -> None:
    """Take an added file away again, unless it is somebody's by now."""
    now, kept = place.read(), staged.read()
    if kept is None:
        return
    if now is not None and now.inode == kept.inode:
        place.remove()
        after = staged.read()
        if after is not None and after.digest != change.new:
            # Somebody wrote to it: that is theirs now, and goes back where they will look for it.
            os.rename(staged.name, place.name, src_dir_fd=staged.directory, dst_dir_fd=place.directory)
            return
    staged.remove()
    place.sync()
