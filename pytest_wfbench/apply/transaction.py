"""All changes or none: staged beside their files, exchanged one by one, verified, undone in reverse on any fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_wfbench.apply.errors import Faulted, Refused, Stopped
from pytest_wfbench.apply.journal import Change, Journal, Plan, journals, new_journal, remove_torn
from pytest_wfbench.apply.lease import InUse, await_writers
from pytest_wfbench.apply.places import Held, Place, Root
from pytest_wfbench.apply.swap import Moved, Swap, swap
from pytest_wfbench.apply.undo import undo_all

Watch = Callable[[str], None]


class Raced(Exception):
    """Somebody else changed a file meanwhile."""


@dataclass(frozen=True)
class _Work:
    root: Root
    journal: Journal
    data: Mapping[str, bytes]
    swap: Swap
    watch: Watch

    def places(self, change: Change) -> tuple[Place, Place]:
        place = self.root.place(change.path)
        return place, self.journal.staged(place)


def apply_changes(
    root: Root, changes: Sequence[Change], data: Mapping[str, bytes], watch: Watch, swapping: Swap = swap
) -> None:
    """Write all changes, or leave everything as it was.

    Args:
        changes: what is to become of which file, each once; ``data`` has the new bytes by path.
        watch: called with the name of every step before it is done; what it raises ends the apply.

    Raises:
        Refused: when nothing was touched.
        Faulted: when all was undone that could be.
    """
    with root.locked():
        remove_torn(root)
        if found := next(journals(root), None):
            raise Refused(f"{found.name} is there: an earlier apply was cut short. Finish it with --recover first")
        for change in changes:
            check_base(root, change)
        work = _Work(root, new_journal(_plan(root, changes)), data, swapping, watch)
        watch("journal")
        try:
            work.journal.write(root)
        except OSError as error:
            raise Refused(f"the recovery file cannot be written to {root.path}: {error.strerror}") from error
        try:
            _carry_out(work)
            done = work.journal.finish(root)
        except Faulted:
            raise
        except BaseException as error:
            raise _undone(work, error) from error
        _drop(work, done)


def check_base(root: Root, change: Change) -> Held | None:
    """Return the file that a change is made to; raise Refused where it is not what the evidence is bound to."""
    if change.base is None and not root.has_directory(str(PurePosixPath(change.path).parent)):
        return None
    held = root.place(change.path).read()
    if change.base is None and held is not None:
        raise Refused(f"{change.path} is there, but the candidate adds it: the evidence was made without it")
    if change.base is not None and held is None:
        raise Refused(f"{change.path} is not there, but the candidate changes it")
    if held is not None and held.digest == change.new:
        raise Refused(f"{change.path} is the candidate's file already")
    if held is not None and held.digest != change.base:
        raise Refused(f"{change.path} is {held.digest}, the evidence is bound to {change.base}: run the sweep again")
    return held


def _plan(root: Root, changes: Sequence[Change]) -> Plan:
    wanted = {str(up) for c in changes if c.base is None for up in PurePosixPath(c.path).parents if str(up) != "."}
    missing = [path for path in sorted(wanted) if not root.has_directory(path)]
    return Plan(changes=tuple(changes), directories=tuple(missing))


def _carry_out(work: _Work) -> None:
    for directory in work.journal.plan.directories:
        work.watch(f"make {directory}")
        work.root.make_directory(directory)
    for change in work.journal.plan.changes:
        work.watch(f"stage {change.path}")
        with _about(change):
            _stage(work, change)
    for change in work.journal.plan.changes:
        work.watch(f"exchange {change.path}")
        with _about(change):
            _put(work, change)
    work.watch("verify")
    work.root.check_unmoved()
    for change in work.journal.plan.changes:
        _verify(work, change)
    work.watch("finish")


@contextmanager
def _about(change: Change) -> Iterator[None]:
    """What the system says of a name in some directory it says of the change."""
    try:
        yield
    except OSError as error:
        error.filename = change.path
        raise


def _stage(work: _Work, change: Change) -> None:
    """The new bytes are whole on the disk before they have the name by which they are known."""
    place, staged = work.places(change)
    partial = work.journal.partial(place)
    before = place.read()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(partial.name, flags, 0o644, dir_fd=partial.directory)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(work.data[change.path])
        stream.flush()
        if before is not None:
            with suppress(PermissionError):
                os.fchown(stream.fileno(), *before.owner)
            os.fchmod(stream.fileno(), before.mode)
        os.fsync(stream.fileno())
    os.rename(partial.name, staged.name, src_dir_fd=partial.directory, dst_dir_fd=staged.directory)
    staged.sync()


def _put(work: _Work, change: Change) -> None:
    place, staged = work.places(change)
    if change.base is None:
        os.link(staged.name, place.name, src_dir_fd=staged.directory, dst_dir_fd=place.directory, follow_symlinks=False)
    else:
        work.swap(place, staged)
        replaced = staged.read()
        if replaced is None or replaced.digest != change.base:
            raise Raced(f"{change.path} was edited meanwhile")
    place.sync()


def _verify(work: _Work, change: Change) -> None:
    """Each file is the new one, what it replaced is what it was, and nobody is writing to that."""
    place, staged = work.places(change)
    if change.base is not None:
        await_writers(staged)
    now, kept = place.read(), staged.read()
    if now is None or now.digest != change.new:
        raise Raced(f"{change.path} was edited meanwhile")
    if kept is None or kept.digest != (change.base or change.new):
        raise Raced(f"{change.path} was edited meanwhile, through a handle that was open before")


def _undone(work: _Work, error: BaseException) -> BaseException:
    left = undo_all(work.root, work.journal, work.swap)
    if left:
        held = Journal(work.journal.key, work.journal.plan.model_copy(update={"left": left}))
        with suppress(OSError):
            held.write(work.root)
    if isinstance(error, OSError | Refused | Raced | Moved | InUse | Stopped):
        return Faulted(f"{_told(error)}; everything was put back{' but what follows' if left else ''}", left)
    return Faulted(f"{error or type(error).__name__}; everything was put back", left) if left else error


def _told(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'the repository'}: {error.strerror}"
    return f"{error} was replaced meanwhile" if isinstance(error, Moved) else str(error)


def _drop(work: _Work, done: Journal) -> None:
    try:
        for change in done.plan.changes:
            work.places(change)[1].remove()
        done.remove(work.root)
    except OSError as error:
        message = f"all files are the new ones, but a backup cannot be removed: {_told(error)}"
        raise Faulted(message, (f"{done.name}: run wfbench apply --recover",)) from error


def differences(root: Root, changes: Sequence[Change]) -> Iterator[tuple[Change, bytes]]:
    """Yield what each change is made to, nothing of it for a file that is added; raise Refused as an apply would."""
    for change in changes:
        held = check_base(root, change)
        yield change, held.data if held else b""
