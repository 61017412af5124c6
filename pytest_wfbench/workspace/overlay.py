"""The workspace of one cell: an overlay of template, start state and an upper that holds exactly what was changed."""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.spec import WORKSPACE, Bind, Mount, Overlay
from pytest_wfbench.workspace.startstate import StartState

WorkspaceKind = Literal["overlay", "reflink", "copy"]
SKILL_ROOTS = (".claude/skills", ".agents/skills", ".codex/skills", ".opencode/skills", ".opencode/skill")
_CHECK = "check-"
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


@dataclass(frozen=True)
class Part:
    """A directory of the workspace with an upper of its own; ``prefix`` is empty for the workspace itself."""

    prefix: str
    lowers: tuple[Path, ...]
    upper: Path
    work: Path

    @property
    def target(self) -> str:
        """Where it is mounted."""
        return f"{WORKSPACE}/{self.prefix}" if self.prefix else WORKSPACE


class Workspace(Protocol):
    """What the files of one cell are, however they are kept apart from those of others."""

    @property
    def kind(self) -> WorkspaceKind:
        """How they are kept, as the row records it."""
        ...

    @property
    def start(self) -> StartState:
        """The start state that everything is compared with."""
        ...

    @property
    def directory(self) -> Path:
        """A directory of its own, which is removed with it; no mount shows it whole."""
        ...

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The paths that have an upper of their own, as ``raw_mounts`` numbers them."""
        ...

    @property
    def since(self) -> int | None:
        """Where there are no uppers, when the workspace was made: nanoseconds of its file system's clock."""
        ...

    def session_mounts(self) -> tuple[Mount, ...]:
        """Return the mounts of a session: writable, but for the skills."""
        ...

    def check_mounts(self) -> tuple[Mount, ...]:
        """Return the mounts of verify and oracle: what the agent left, under a throw-away upper."""
        ...

    def view_mounts(self) -> tuple[Mount, ...]:
        """Return the start state, read-only: for reviews and MCP servers."""
        ...

    def merged_mounts(self) -> tuple[Mount, ...]:
        """Return what the agent left, read-only."""
        ...

    def raw_mounts(self, target: str) -> tuple[Mount, ...]:
        """Return the uppers, if there are any, as they are, read-only, numbered below ``target``."""
        ...

    def remove(self) -> None:
        """Remove it. Raises CleanupFailed."""
        ...


@dataclass(frozen=True)
class OverlayWorkspace:
    """A workspace of overlay mounts; ``directory`` holds its uppers and is its own.

    ``on_disk`` is whom throw-away uppers belong to where memory cannot hold them, else none.
    """

    start: StartState
    directory: Path
    parts: tuple[Part, ...]
    sealed: tuple[tuple[str, tuple[Path, ...]], ...]
    on_disk: Identity | None = None
    kind: WorkspaceKind = "overlay"
    since: int | None = None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The paths that have an upper of their own."""
        return tuple(part.prefix for part in self.parts)

    def session_mounts(self) -> tuple[Mount, ...]:
        """Return the mounts of a session. The skills are read-only and cannot be moved away, nor can their parents."""
        writable = [Overlay(part.lowers, part.target, "rw", part.upper, part.work) for part in self.parts]
        return (*writable, *self._skills(), *self.start.template.beside)

    def check_mounts(self) -> tuple[Mount, ...]:
        """Return the mounts of verify and oracle."""
        thrown_away = (self._thrown_away(part) for part in self.parts)
        return (*thrown_away, *self._skills(), *self.start.template.beside)

    def view_mounts(self) -> tuple[Mount, ...]:
        """Return the start state, read-only."""
        return (Overlay(self.parts[0].lowers, WORKSPACE, "ro"), *self.start.template.beside)

    def merged_mounts(self) -> tuple[Mount, ...]:
        """Return what the agent left, read-only."""
        return (*(Overlay((*part.lowers, part.upper), part.target, "ro") for part in self.parts), *self._skills())

    def raw_mounts(self, target: str) -> tuple[Mount, ...]:
        """Return the uppers as they are, read-only, numbered below ``target``."""
        return tuple(Bind(part.upper, f"{target}/{number}") for number, part in enumerate(self.parts))

    def remove(self) -> None:
        """Remove the uppers. Raises CleanupFailed."""
        for work in (*(part.work for part in self.parts), *self.directory.glob(f"{_CHECK}*/work")):
            inner = work / "work"
            if inner.is_dir() and not inner.is_symlink():
                inner.chmod(0o700)
        remove_tree(self.directory)

    def _thrown_away(self, part: Part) -> Overlay:
        lowers = (*part.lowers, part.upper)
        if self.on_disk is None:
            return Overlay(lowers, part.target, "tmp")
        place = self.on_disk.own(Path(tempfile.mkdtemp(prefix=_CHECK, dir=self.directory)))
        return Overlay(lowers, part.target, "rw", *_upper_and_work(place, "", self.on_disk))

    def _skills(self) -> tuple[Mount, ...]:
        return tuple(Overlay(lowers, f"{WORKSPACE}/{root}", "ro") for root, lowers in self.sealed)


def open_workspace(
    start: StartState, scratch: Path, identity: Identity, throw_away: Literal["memory", "disk"] = "memory"
) -> OverlayWorkspace:
    """Return a new workspace over a start state, in constant time: its uppers are empty directories in ``scratch``.

    ``throw_away`` says where the uppers of verify and oracle lie.
    """
    directory = identity.own(Path(tempfile.mkdtemp(prefix="cell-", dir=scratch)))
    sealed = tuple((root, lowers) for root in SKILL_ROOTS if (lowers := stacked(start.layers, root)))
    prefixes = ["", *dict.fromkeys(root.rpartition("/")[0] for root, _ in sealed)]
    parts = []
    for number, prefix in enumerate(prefixes):
        upper, work = _upper_and_work(directory, f"-{number}", identity)
        parts.append(Part(prefix, stacked(start.layers, prefix), upper, work))
    return OverlayWorkspace(start, directory, tuple(parts), sealed, identity if throw_away == "disk" else None)


def _upper_and_work(directory: Path, suffix: str, identity: Identity) -> tuple[Path, Path]:
    upper, work = (directory / f"{name}{suffix}" for name in ("upper", "work"))
    for path in (upper, work):
        path.mkdir(mode=0o755)
        identity.own(path)
    return upper, work


def stacked(layers: tuple[Path, ...], relative: str) -> tuple[Path, ...]:
    """Return the directories that make up a path of stacked layers, lowest first; none if it is no directory there."""
    found: list[Path] = []
    for layer in reversed(layers):
        place, hides = _in_layer(layer, relative)
        if place is not None:
            found.append(place)
        if hides:
            break
    return tuple(reversed(found))


def _in_layer(layer: Path, relative: str) -> tuple[Path | None, bool]:
    """Return the directory at a path of one layer, and whether it hides those of the layers below."""
    place, hides = layer, False
    for part in Path(relative).parts:
        place = place / part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return None, hides
        if not stat.S_ISDIR(mode):
            return None, True
        hides = hides or _is_opaque(place)
    return place, hides


def _is_opaque(directory: Path) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(directory, name, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False
