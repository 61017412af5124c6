"""Under which uid sandboxed processes run, and the directories that belong to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from pytest_wfbench.sandbox.spec import SandboxName

UNPRIVILEGED = 64321
UID_VARIABLE = "WFBENCH_SANDBOX_UID"
LARGEST_UID = 2**32 - 2
SOCKET_PATH_LIMIT = 107
NAME = "pytest-wfbench"


class BadIdentity(ValueError):
    """The uid that sandboxes were to run as is none; the message says what to give instead."""


@dataclass(frozen=True)
class Identity:
    """The real uid and gid of every sandboxed process. Never root."""

    uid: int
    gid: int

    def __post_init__(self) -> None:
        if self.uid <= 0 or self.gid <= 0:
            raise ValueError("a sandboxed process never runs as root: choose a uid and gid above 0")

    @property
    def foreign(self) -> bool:
        """Whether it differs from the harness's own, so that files made for it must be handed over."""
        return self.uid != os.geteuid()

    def own(self, path: Path) -> Path:
        """Hand a file or directory (not a link's target) over to this identity, and return it."""
        if self.foreign:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return path


def choose_identity() -> Identity:
    """Return whom sandboxed processes run as: the user's own, or root's stand-in, a uid (and gid) without an account.

    Raises:
        BadIdentity: when root names something else than a uid above 0 in ``WFBENCH_SANDBOX_UID``.
    """
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid())
    named = os.environ.get(UID_VARIABLE) or str(UNPRIVILEGED)
    uid = int(named) if named.isascii() and named.isdigit() and len(named) < 12 else 0
    if not 0 < uid < LARGEST_UID:
        raise BadIdentity(f"{UID_VARIABLE}: {named!r} is no uid above 0: name one that no account has")
    return Identity(uid, uid)


def cache_directory(identity: Identity) -> Path:
    """Return the directory that outlives a sweep, creating it.

    ``WFBENCH_CACHE_DIR`` names it, else it is the user's cache, for root ``/var/cache/pytest-wfbench``. What a sandbox
    is to read or write lies in directories inside it that ``private_directory`` makes.
    """
    named = os.environ.get("WFBENCH_CACHE_DIR")
    if named:
        path = Path(named).absolute()
    elif identity.foreign:
        path = Path("/var/cache") / NAME
    else:
        path = Path(platformdirs.user_cache_dir(NAME))
    path.mkdir(parents=True, exist_ok=True, mode=_outer_mode(identity))
    return path


def shelves(identity: Identity, sandbox: SandboxName) -> Path:
    """Return the directory for templates and start states, which outlive a sweep.

    The host's are kept apart: whatever ran there without a boundary could have written to them. Nobody but the
    sandbox's identity can enter: a repository that only its owner can read is copied there.
    """
    return private_directory(cache_directory(identity), f"shelves-{sandbox}", identity)


def private_directory(parent: Path, name: str, identity: Identity) -> Path:
    """Return ``parent/name``, created for the sandbox's identity alone (and root); each uid has its own."""
    path = parent / (f"{name}-{identity.uid}" if identity.foreign and identity.uid != UNPRIVILEGED else name)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return path
    return identity.own(path)


@contextmanager
def runtime_directory(identity: Identity) -> Iterator[Path]:
    """Give a directory for sockets: short, traversable by the sandbox's identity, removed at the end."""
    user = Path(f"/run/user/{os.geteuid()}")
    base = user if not identity.foreign and os.access(user, os.W_OK) else Path("/tmp")
    path = Path(tempfile.mkdtemp(prefix="wfb-", dir=base))
    try:
        path.chmod(_outer_mode(identity))
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _outer_mode(identity: Identity) -> int:
    return 0o711 if identity.foreign else 0o700
