"""What a cell changed against its start state, computed by a git that the agent never had in hand."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.evidence.row import Churn
from pytest_wfbench.sandbox.spec import Overlay, Sandbox
from pytest_wfbench.workspace.inside import Answer, Inquiry
from pytest_wfbench.workspace.overlay import SKILL_ROOTS, Workspace
from pytest_wfbench.workspace.program import run_inside

PATCH_LIMIT = 300_000
_RAW = "/run/wfbench/raw"
_START = "/run/wfbench/start"
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class Change:
    """What was changed. ``files``, ``churn``, ``fingerprint`` and ``patch`` leave plan files and skills out.

    ``paths`` are all changed paths, of which at most the first 10,000 are listed; names that are not text carry
    surrogate escapes. ``fingerprint`` and ``patch_digest`` are none where nothing was changed. ``patch`` is cut off
    after ``PATCH_LIMIT`` bytes if it is ``truncated``. ``head`` is the commit that the workspace's HEAD says it is at.
    """

    paths: tuple[str, ...]
    files: tuple[str, ...]
    churn: Churn
    fingerprint: str | None
    patch: bytes
    truncated: bool
    patch_digest: str | None
    head: str | None

    @property
    def something(self) -> bool:
        """Whether anything but plans and skills was changed."""
        return self.churn.files > 0


def changed(workspace: Workspace, sandbox: Sandbox, plans: Iterable[str] = (), timeout: float = 300.0) -> Change:
    """Say what the cell changed so far, by one run of a sandbox without network.

    Args:
        plans: paths and patterns (``*``, ``**``, ``?``) of plan files; one that names a directory means all below it.

    Raises:
        ProgramFailed: when it cannot be computed.
    """
    start = Overlay(workspace.start.layers, _START, "ro")
    inquiry = Inquiry(
        commit=workspace.start.start_commit,
        prefixes=tuple(prefix.encode() for prefix in workspace.prefixes),
        since=workspace.since,
        excluded=tuple(pattern(glob) for glob in (*plans, *SKILL_ROOTS)),
        patch_limit=PATCH_LIMIT,
    )
    mounts = (*workspace.merged_mounts(), *workspace.raw_mounts(_RAW), start)
    found = run_inside(sandbox, "inside", "answer", tuple(inquiry), mounts, timeout, places=(_START, _RAW))
    return _change(Answer(*found))


def _change(found: Answer) -> Change:
    patch = base64.b64decode(found.patch)
    return Change(
        paths=tuple(path for path, _ in found.paths),
        files=tuple(path for path, excluded in found.paths if not excluded),
        churn=Churn(files=found.files, insertions=found.insertions, deletions=found.deletions),
        fingerprint=f"sha256:{found.fingerprint}" if found.files else None,
        patch=patch,
        truncated=found.truncated,
        patch_digest=digest_bytes(patch) if found.files else None,
        head=found.head,
    )


def pattern(glob: str) -> bytes:
    """Return a regular expression over whole paths for a path or pattern, or for all below the directory it names."""
    words = re.split(r"(\*\*/|\*\*|\*|\?)", glob.strip("/").removeprefix("./"))
    return ("".join(_WILDCARDS.get(word, re.escape(word)) for word in words) + "(?:/.*)?").encode()
