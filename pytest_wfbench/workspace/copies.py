"""The workspace of one cell where overlays cannot be mounted: a copy of the start state, and of what was left of it."""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.spec import WORKSPACE, Bind, Mount
from pytest_wfbench.workspace.copying import copy_kind, copy_tree
from pytest_wfbench.workspace.overlay import SKILL_ROOTS, WorkspaceKind
from pytest_wfbench.workspace.startstate import StartState


@dataclass(frozen=True)
class CopyWorkspace:
    """A workspace that is a tree of its own in ``directory``. ``sealed`` are the skill directories of the start."""

    start: StartState
    directory: Path
    sealed: tuple[str, ...]
    kind: WorkspaceKind
    since: int
    prefixes: tuple[str, ...] = ()

    @property
    def tree(self) -> Path:
        """What the agent works on."""
        return self.directory / "tree"

    def session_mounts(self) -> tuple[Mount, ...]:
        """Return the mounts of a session. The skills are read-only and cannot be moved away, nor can their parents."""
        return self._writable(self.tree, self.since)

    def check_mounts(self) -> tuple[Mount, ...]:
        """Return the mounts of verify or oracle, each time over a new copy of what the agent left.

        Raises:
            CopyFailed: when there is no copy.
        """
        copy = self.directory / f"check-{secrets.token_hex(4)}"
        return self._writable(copy, copy_tree(self.tree, copy))

    def view_mounts(self) -> tuple[Mount, ...]:
        """Return the start state, read-only."""
        return (Bind(self.start.layers[0], WORKSPACE), *self.start.template.beside)

    def merged_mounts(self) -> tuple[Mount, ...]:
        """Return what the agent left, read-only."""
        return (Bind(self.tree, WORKSPACE),)

    def raw_mounts(self, target: str) -> tuple[Mount, ...]:
        """Return nothing: there are no uppers."""
        return ()

    def remove(self) -> None:
        """Remove the copies. Raises CleanupFailed."""
        remove_tree(self.directory)

    def _writable(self, tree: Path, since: int) -> tuple[Mount, ...]:
        # What is mounted on itself cannot be renamed.
        roots = [root for root in self.sealed if _is_own_directory(tree, root)]
        parents = dict.fromkeys(root.rpartition("/")[0] for root in roots)
        pinned = [Bind(tree / parent, f"{WORKSPACE}/{parent}", writable=True) for parent in parents]
        sealed = [Bind(tree / root, f"{WORKSPACE}/{root}") for root in roots]
        return (Bind(tree, WORKSPACE, writable=True, since=since), *pinned, *sealed, *self.start.template.beside)


def open_copy(start: StartState, scratch: Path, identity: Identity) -> CopyWorkspace:
    """Return a new workspace with a copy of a start state, which is one tree, in ``scratch``.

    Raises:
        CopyFailed: when there is no copy.
    """
    (source,) = start.layers
    directory = identity.own(Path(tempfile.mkdtemp(prefix="cell-", dir=scratch)))
    kind = copy_kind(source / ".git/HEAD", directory)
    since = copy_tree(source, directory / "tree")
    sealed = tuple(root for root in SKILL_ROOTS if _is_own_directory(source, root))
    return CopyWorkspace(start, directory, sealed, kind, since)


def _is_own_directory(tree: Path, relative: str) -> bool:
    """Whether there is a directory at a path, through no link."""
    places = [tree / relative, *(tree / relative).parents[: relative.count("/")]]
    return all(place.is_dir() and not place.is_symlink() for place in places)
