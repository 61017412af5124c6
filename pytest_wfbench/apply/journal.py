"""What an apply is about to do, on the disk before it does it: by that alone a killed one can be finished."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field, ValidationError

from pytest_wfbench.apply.errors import Faulted, Refused
from pytest_wfbench.apply.places import Place, Root
from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.evidence.row import Block
from pytest_wfbench.files import UnsafeFile, read_untrusted, write_atomic

PREFIX = ".wfbench-recovery-"
_NAME = re.compile(r"\.wfbench-recovery-([0-9a-f]{12})(\.done)?\.json\Z")
_TORN = re.compile(r"\.\.wfbench-recovery-[0-9a-f]{12}(\.done)?\.json\.[0-9a-f]{12}\Z")
LIMIT = 1 << 20
LONGEST = 200


class Change(Block):
    """One file that is changed, or added where ``base`` is none. Digests are of the bytes before and after."""

    path: str
    base: str | None
    new: str


class Plan(Block):
    """All of an apply. ``directories`` are those it makes; ``left`` is what could not be undone, in words."""

    note: str = "An apply of pytest-wfbench was cut short here. Finish it with: wfbench apply --recover --to ."
    changes: tuple[Change, ...] = Field(max_length=4096)
    directories: tuple[str, ...] = Field((), max_length=4096)
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Journal:
    """A plan on the disk, known by its key. It is ``done`` once all files are the new ones and only backups remain."""

    key: str
    plan: Plan
    done: bool = False

    @property
    def name(self) -> str:
        """The file's name in the repository's root."""
        return f"{PREFIX}{self.key}{'.done' if self.done else ''}.json"

    def staged(self, place: Place) -> Place:
        """Return where the new file is staged, and after the exchange the old one kept."""
        return place.beside(f".{_short(place.name)}.{self.key}.wfbench")

    def partial(self, place: Place) -> Place:
        """Return where the new file is written before it is whole."""
        return place.beside(f".{_short(place.name)}.{self.key}.wfbench-part")

    def write(self, root: Root) -> None:
        """Write it, durably."""
        write_atomic(root.path / self.name, self.plan.model_dump_json(indent=1) + "\n")

    def finish(self, root: Root) -> Journal:
        """Mark it as done, durably: from here on there is no way back.

        Raises:
            OSError: when it is not marked.
            Faulted: when it is, but nobody knows whether that lasts: nothing may be undone, and no backup removed.
        """
        after = Journal(self.key, self.plan, True)
        os.rename(self.name, after.name, src_dir_fd=root.descriptor, dst_dir_fd=root.descriptor)
        try:
            os.fsync(root.descriptor)
        except OSError:
            try:
                os.rename(after.name, self.name, src_dir_fd=root.descriptor, dst_dir_fd=root.descriptor)
            except OSError as error:
                message = f"all files are the new ones, but {after.name} may not last: {error.strerror}"
                raise Faulted(message, (f"{after.name}: run wfbench apply --recover",)) from error
            raise
        return after

    def remove(self, root: Root) -> None:
        """Remove it: nothing is left to be done."""
        Place(root.descriptor, self.name, self.name).remove()
        os.fsync(root.descriptor)


def _short(name: str) -> str:
    """A name that leaves room for a key, and is no other file's."""
    return name if len(os.fsencode(name)) <= LONGEST else digest_bytes(os.fsencode(name))[-32:]


def new_journal(plan: Plan) -> Journal:
    """Return a journal with a key of its own."""
    return Journal(secrets.token_hex(6), plan)


def remove_torn(root: Root) -> None:
    """Remove journals that were never whole: nothing was touched by their applies. Only for who holds the lock."""
    for path in root.path.iterdir():
        if _TORN.match(path.name):
            Place(root.descriptor, path.name, path.name).remove()


def journals(root: Root) -> Iterator[Journal]:
    """Yield the journals of a repository.

    Raises:
        Refused: for one that does not read.
    """
    for path in sorted(root.path.iterdir()):
        name = path.name
        if (found := _NAME.match(name)) is None:
            continue
        try:
            plan = Plan.model_validate_json(read_untrusted(root.path, name, LIMIT))
        except (UnsafeFile, ValidationError) as error:
            raise Refused(f"{name} does not read as a recovery file: remove it if it is none of wfbench's") from error
        yield Journal(found[1], plan, found[2] is not None)
