"""The start state: the template and what happens before the session, committed and frozen as a first layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from pytest_wfbench.digests import digest_bytes, digest_tree, digest_value
from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.spec import WORKSPACE, Bind, Bounds, Command, Data, Finished, Mount, Overlay, Sandbox
from pytest_wfbench.workspace.copying import copy_tree
from pytest_wfbench.workspace.fastimport import PINNED
from pytest_wfbench.workspace.inside import Inquiry
from pytest_wfbench.workspace.program import ProgramFailed, run_inside
from pytest_wfbench.workspace.shelf import fetch
from pytest_wfbench.workspace.template import Template

RULES = 2
LAYER = "upper"
OVERLAY_ROOT = ".claude/skills"
_PATCH = "/run/wfbench/start.patch"
_RAW = "/run/wfbench/raw"
_START = "/run/wfbench/start"
_APPLY = ("git", "-c", "core.hooksPath=/dev/null", "apply", "--whitespace=nowarn", _PATCH)
_APPLY_TIMEOUT = 120.0
SetupKind = Literal["setup-failed", "setup-timeout", "patch-failed", "overlay-failed"]


class SetupFailed(Exception):
    """A start state cannot be made. ``kind`` says which step failed, ``tail`` is the end of its output."""

    def __init__(self, kind: SetupKind, tail: str) -> None:
        super().__init__(f"{kind}: {tail.strip()[-300:]}")
        self.kind: SetupKind = kind
        self.tail = tail


@dataclass(frozen=True)
class StartState:
    """What every session of a task and arm starts from; ``layer`` is none where nothing happens before it.

    A ``whole`` layer is no layer over the template but a copy of it.
    """

    template: Template
    layer: Path | None
    start_commit: str
    digest: str
    whole: bool = False

    @property
    def layers(self) -> tuple[Path, ...]:
        """The directories that are stacked, lowest first."""
        if self.layer is None:
            return (self.template.path,)
        return (self.layer,) if self.whole else (self.template.path, self.layer)


@dataclass(frozen=True)
class Preparation:
    """What happens before the session, in this order. ``timeout`` in seconds and ``bounds`` are for ``setup``.

    ``setup`` is a shell command, ``overlay`` maps paths below ``.claude/skills`` to bytes, ``patch`` is applied as by
    ``git apply`` and is a commit of its own: what is under review is the same in all arms.
    """

    setup: str | None
    overlay: Mapping[str, bytes]
    patch: bytes | None
    timeout: float
    bounds: Bounds

    @property
    def digest(self) -> str:
        """A digest of all that shapes the outcome."""
        patch = None if self.patch is None else digest_bytes(self.patch)
        return digest_value([RULES, self.setup, patch, digest_tree(self.overlay.items())])


class _Record(BaseModel):
    start_commit: str
    digest: str


def make_start(
    template: Template,
    *,
    setup: str | None = None,
    patch: bytes | None = None,
    overlay_files: Mapping[str, bytes] | None = None,
    timeout: float = 600.0,
    bounds: Bounds | None = None,
    sandbox: Sandbox,
    identity: Identity,
    cache: Path,
    copies: bool = False,
) -> StartState:
    """Return the start state, made at most once for the cache.

    Args:
        setup: a shell command that runs without network, with a read-only ``.git``, for at most ``timeout`` seconds.
        patch: the change under review, the last commit.
        overlay_files: a candidate's files, by their path below ``.claude/skills``.
        copies: make it a copy of the template, for want of overlay mounts.

    Raises:
        SetupFailed: when a step failed.
        CopyFailed: when there is no copy.
    """
    before = Preparation(setup, overlay_files or {}, patch, timeout, bounds or Bounds())
    if before.setup is None and before.patch is None and not before.overlay:
        return StartState(template, None, template.snapshot_commit, template.digest)
    bound = digest_value([template.digest, before.digest, *filter(None, [template.beside_digest])])

    def make(staged: Path) -> _Record:
        identity.own(staged)
        ground = (_copied if copies else _layered)(template, staged, identity)
        unwritable = Bind(template.path / ".git", f"{WORKSPACE}/.git")
        mounts = (ground.workspace, unwritable, *template.beside)
        commit = template.snapshot_commit
        if before.setup is not None or before.overlay:
            _prepare(before, mounts, sandbox)
            commit = _readable(lambda: _seal(commit, ground, sandbox, "start state"))
        if before.patch is not None:
            _apply(before.patch, before.bounds, mounts, sandbox)
            commit = _readable(lambda: _seal(commit, ground, sandbox, "change"))
        remove_tree(staged / "work")
        return _Record(start_commit=commit, digest=bound)

    shelf = cache / ("start-copies" if copies else "starts")
    place, record = fetch(shelf, bound.removeprefix("sha256:")[:32], _Record, make)
    return StartState(template, place / LAYER, record.start_commit, record.digest, whole=copies)


@dataclass(frozen=True)
class _Ground:
    """Where a start state is made: its workspace, how it is found out what happened in it, and by what mount."""

    workspace: Mount
    prefixes: tuple[bytes, ...]
    since: int | None
    traces: Mount


def _layered(template: Template, staged: Path, identity: Identity) -> _Ground:
    upper, work = staged / LAYER, staged / "work"
    for path in (upper, work):
        path.mkdir(mode=0o755)
        identity.own(path)
    overlay = Overlay((template.path,), WORKSPACE, "rw", upper, work)
    return _Ground(overlay, (b"",), None, Bind(upper, f"{_RAW}/0"))


def _copied(template: Template, staged: Path, identity: Identity) -> _Ground:
    since = copy_tree(template.path, staged / LAYER)
    workspace = Bind(staged / LAYER, WORKSPACE, writable=True, since=since)
    return _Ground(workspace, (), since, Bind(template.path, _START))


def _prepare(before: Preparation, mounts: tuple[Mount, ...], sandbox: Sandbox) -> None:
    """Run what comes before the patch, in sandboxes in which the workspace's ``.git`` cannot be written."""
    if before.setup is not None:
        argv = ("/bin/bash", "-c", before.setup)
        ended = sandbox.run(Command(argv, mounts, before.timeout, bounds=before.bounds))
        _expect(ended, "setup-timeout" if ended.timed_out else "setup-failed")
    if before.overlay:
        files = tuple(sorted(before.overlay.items()))
        _translate(lambda: run_inside(sandbox, "files_inside", "place", (OVERLAY_ROOT, files), mounts))


def _apply(patch: bytes, bounds: Bounds, mounts: tuple[Mount, ...], sandbox: Sandbox) -> None:
    given = Data(_PATCH, patch)
    ended = sandbox.run(Command(_APPLY, (*mounts, given), _APPLY_TIMEOUT, env=PINNED, bounds=bounds))
    _expect(ended, "patch-failed")


def _expect(ended: Finished, kind: SetupKind) -> None:
    if not ended.started:
        raise ProgramFailed(ended.stderr.decode(errors="replace").strip()[-1000:])
    if not ended.ok:
        tail = ended.stdout + ended.stderr + (f"\nit {ended.limit_told}".encode() if ended.limit else b"")
        raise SetupFailed(kind, tail[-8192:].decode(errors="replace"))


def _translate(place: Callable[[], object]) -> None:
    try:
        place()
    except ProgramFailed as error:
        raise SetupFailed("overlay-failed", str(error)) from error


def _readable(seal: Callable[[], str]) -> str:
    """Seal, and tell in a line where ``setup`` left what its own user may not read."""
    try:
        return seal()
    except ProgramFailed as error:
        denied = [line for line in str(error).splitlines() if "Permission denied" in line]
        if not denied:
            raise
        raise SetupFailed("setup-failed", f"what it left cannot be read: {denied[-1].strip()}") from error


def _seal(parent: str, ground: _Ground, sandbox: Sandbox, message: str) -> str:
    """Commit what differs from the commit ``parent``, which what was changed since the template lies on."""
    inquiry = Inquiry(parent, ground.prefixes, ground.since).plain()
    mounts = (ground.workspace, ground.traces)
    return str(run_inside(sandbox, "inside", "seal", inquiry, mounts, places=(_START, _RAW, message)))
