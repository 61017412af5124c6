"""What a machine needs before there is a sandbox: programs, a uid, a place for sockets and one for files."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.sandbox.identity import (
    SOCKET_PATH_LIMIT,
    UID_VARIABLE,
    Identity,
    cache_directory,
    runtime_directory,
)
from pytest_wfbench.sandbox.process import run_process

FREE_BYTES = 1 << 30
FREE_FILES = 10_000
CACHE_REMEDY = "name another directory in WFBENCH_CACHE_DIR"
# What the longest name of a socket adds to the directory that sockets lie in.
_SOCKET_ROOM = 48
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_TIMEOUT = 20.0


@dataclass(frozen=True)
class Check:
    """One thing that was tried. ``detail`` says what was found, ``remedy`` what to do where it is not ok.

    Cells can run without what is not ``needed``.
    """

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    needed: bool = True


def machine_checks(identity: Identity) -> tuple[Check, ...]:
    """Try what is asked of the machine itself."""
    return (_git(), _setpriv(identity), uid_check(identity), _sockets(identity), _cache(identity))


def _git() -> Check:
    remedy = "install git (on Debian: apt install git)"
    path = shutil.which("git")
    if path is None:
        return Check("git", False, "not found", remedy)
    ended = run_process([path, "--version"], env=_ENV, timeout=_TIMEOUT)
    told = ended.stdout.decode(errors="replace").strip()
    return Check("git", ended.ok, f"{told} at {path}" if ended.ok else f"{path} does not run", remedy)


def _setpriv(identity: Identity) -> Check:
    """An ordinary user's sandboxes end with pytest all the same, if not everything that pytest starts beside them."""
    remedy = "install setpriv, a part of util-linux (that of busybox will not do)"
    path = shutil.which("setpriv")
    if path is None:
        return Check("setpriv", False, "not found", remedy, needed=identity.foreign)
    ended = run_process([path, "--pdeathsig", "KILL", "--", "true"], env=_ENV, timeout=_TIMEOUT)
    return Check("setpriv", ended.ok, path if ended.ok else f"{path} knows no --pdeathsig", remedy)


def uid_check(identity: Identity) -> Check:
    """Try whether files can be handed to whom sandboxes run as, and whether that is nobody else."""
    if not identity.foreign:
        return Check("uid", True, f"sandboxes run under your own uid {identity.uid}")
    try:
        with tempfile.NamedTemporaryFile() as trial:
            identity.own(Path(trial.name))
    except OSError as error:
        remedy = (
            f"run pytest as an ordinary user, or name a uid that exists in this container in {UID_VARIABLE}: those are "
            "listed in /proc/self/uid_map"
        )
        return Check("uid", False, f"nothing can be handed to uid {identity.uid}: {error.strerror}", remedy)
    if account := _account(identity.uid):
        remedy = f"name a uid without an account in {UID_VARIABLE}"
        return Check("uid", False, f"uid {identity.uid} is {account}'s, whose processes could reach in", remedy, False)
    return Check("uid", True, f"started by root, sandboxes run under the unused uid {identity.uid}")


def _account(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _sockets(identity: Identity) -> Check:
    remedy = f"let /tmp, or /run/user/{os.geteuid()}, be a directory of a local file system that you can write"
    try:
        with runtime_directory(identity) as directory, socket.socket(socket.AF_UNIX) as trial:
            path = directory / ("s" * _SOCKET_ROOM)
            if (length := len(os.fsencode(path))) > SOCKET_PATH_LIMIT:
                return Check("sockets", False, f"{directory} is too long for the path of a socket", remedy)
            trial.bind(str(path))
            return Check("sockets", True, f"in {directory.parent}, {length} of at most {SOCKET_PATH_LIMIT} bytes")
    except OSError as error:
        return Check("sockets", False, f"no socket can be made: {error.strerror}", remedy)


def _cache(identity: Identity) -> Check:
    try:
        path = cache_directory(identity)
        with tempfile.NamedTemporaryFile(dir=path):
            found = os.statvfs(path)
    except OSError as error:
        return Check("cache", False, f"{error.filename}: {error.strerror}", CACHE_REMEDY)
    free = found.f_bavail * found.f_frsize
    shown = f"{path}, {file_system(path) or 'unknown file system'}, {free / (1 << 30):.0f} GiB free"
    if found.f_flag & os.ST_NOEXEC:
        return Check("cache", False, f"{shown}, on which nothing can be executed", f"mount it exec, or {CACHE_REMEDY}")
    if free < FREE_BYTES or (found.f_files > 0 and found.f_favail < FREE_FILES):
        return Check("cache", False, f"{shown}, room for {found.f_favail:,} files", f"make room, or {CACHE_REMEDY}")
    return Check("cache", True, shown)


def file_system(path: Path) -> str | None:
    """Return the type of the file system that a path lies on, none where the kernel does not say."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    wanted = f"{os.major(path.stat().st_dev)}:{os.minor(path.stat().st_dev)}"
    kinds = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == wanted]
    return kinds[-1] if kinds else None
