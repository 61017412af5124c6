"""An apply that was cut short is finished: forward where all files were the new ones already, back otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_wfbench.apply.errors import Refused
from pytest_wfbench.apply.journal import Journal, journals, remove_torn
from pytest_wfbench.apply.places import Root
from pytest_wfbench.apply.undo import is_gone, undo_all


def recover(root: Root) -> tuple[str, ...]:
    """Finish every apply that was cut short in a repository, and return a sentence for each and for what is left.

    Raises:
        Refused: for a recovery file that does not read, or while another apply is at work.
    """
    with root.locked():
        remove_torn(root)
        return tuple(told for journal in list(journals(root)) for told in _finished(root, journal))


def _finished(root: Root, journal: Journal) -> Iterator[str]:
    if journal.done:
        yield from _forward(root, journal)
        return
    yield from _gone(root, journal)
    left = undo_all(root, journal, final=True)
    yield from left
    yield f"{journal.name}: {'put back but for what is named above' if left else 'everything was put back'}."


def _gone(root: Root, journal: Journal) -> Iterator[str]:
    for change in journal.plan.changes:
        if change.base is not None and is_gone(root, change):
            yield f"{change.path}: its directory was removed or moved away meanwhile, and all in it with it."


def _forward(root: Root, journal: Journal) -> Iterator[str]:
    left = 0
    for change in journal.plan.changes:
        if is_gone(root, change):
            continue
        try:
            staged = journal.staged(root.place(change.path))
            kept = staged.read()
        except Refused as error:
            left += 1
            yield f"{error}."
            continue
        if kept is not None and kept.digest not in (change.base, change.new):
            left += 1
            yield f"{change.path} was edited through a handle that was open before; that edit is {staged.shown}."
            continue
        staged.remove()
    if not left:
        journal.remove(root)
    yield f"{journal.name}: all files are the new ones{'; move away what is named above' if left else ''}."
