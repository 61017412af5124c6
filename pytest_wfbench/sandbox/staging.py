"""Paths that the sandbox's uid cannot reach (below a private home of root's) made reachable, in a mount namespace.

Nothing is mounted on the host: the mounts live in a namespace that dies with the process that has it open, whatever
kills that. It is made once for the same paths, since entering is much cheaper. Bubblewrap is started inside, after the
change of identity, with the paths rewritten. The upper and the work directory of an overlay must be on one mount, so
they lie in one directory that the identity can traverse.
"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.process import end_process, start_process

STAGE = Path("/var/cache/pytest-wfbench/stage")

_STAGE = """set -e
stage=$1; shift
mount -t tmpfs -o mode=0711 stage "$stage"
n=0
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir "$stage/$n"; else : > "$stage/$n"; fi
  mount --rbind "$1" "$stage/$n"
  n=$((n + 1)); shift
done
shift
"""
_EXEC = 'exec "$@"\n'
_HOLD = "echo ready\nread -r _ || :\n"
_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

# Every closed directory is covered by an empty one, in which only what is needed is mounted again where it was.
_UNCOVER = """while [ "$1" != -- ]; do mount -t tmpfs -o mode=0711 cover "$1"; shift; done
shift
n=0
while [ "$1" != -- ]; do
  mkdir -p "${1%/*}"
  if [ -d "$stage/$n" ]; then mkdir "$1"; else : > "$1"; fi
  mount --rbind "$stage/$n" "$1"
  n=$((n + 1)); shift
done
shift
"""


# A cache alone would let several threads make the same, and close all but one that they had named already.
_ONE_MAKER = threading.Lock()


@dataclass(frozen=True)
class Staging:
    """The host paths that are mounted below ``STAGE``; none where everything can be reached.

    ``real`` holds what some paths resolve to.
    """

    units: tuple[Path, ...] = ()
    real: Mapping[Path, Path] = field(default_factory=dict)

    def place(self, path: Path) -> Path:
        """Return where a host path is found by the sandbox's identity."""
        real = self.real.get(path) or path.resolve()
        for index, unit in enumerate(self.units):
            if real.is_relative_to(unit):
                return STAGE / str(index) / real.relative_to(unit)
        return real

    def launch(self, identity: Identity) -> tuple[str, ...]:
        """Return what stands before a command line to run it where the units are mounted, under the identity.

        It is good as long as this object lives: it names a descriptor.
        """
        if not self.units:
            return ()
        if self._held is None:
            return (*_private(_STAGE + _EXEC), *map(str, self.units), "--", *_changed(identity))
        return ("nsenter", f"--mount=/proc/{os.getpid()}/fd/{self._held.fileno()}", "--", *_changed(identity))

    @cached_property
    def _held(self) -> FileIO | None:
        with _ONE_MAKER:
            return _namespace(self.units)

    def launch_in_place(self, identity: Identity) -> tuple[str, ...]:
        """Return the same for a command line that knows nothing of ``place``: every path is found where it is."""
        if not self.units:
            return ()
        units = tuple(map(str, self.units))
        covers = sorted({str(_outermost_closed(unit, identity)) for unit in self.units})
        return (*_private(_STAGE + _UNCOVER + _EXEC), *units, "--", *covers, "--", *units, "--", *_changed(identity))


@lru_cache(maxsize=32)
def _namespace(units: tuple[Path, ...]) -> FileIO | None:
    """Return a mount namespace with the units in it, open; none where it cannot be made or held."""
    try:
        command = (*_private(_STAGE + _HOLD, "slave"), *map(str, units), "--")
        maker = start_process(command, env=_ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError:
        return None
    try:
        assert maker.stdout is not None
        ready = maker.stdout.readline() == b"ready\n"
        return FileIO(f"/proc/{maker.pid}/ns/mnt") if ready else None
    except OSError:
        return None
    finally:
        for stream in (maker.stdin, maker.stdout):
            if stream is not None:
                stream.close()
        end_process(maker, grace=1)


def _private(script: str, propagation: str = "private") -> tuple[str, ...]:
    STAGE.mkdir(parents=True, exist_ok=True, mode=0o711)
    return ("unshare", "--mount", "--propagation", propagation, "--", "sh", "-c", script, "sh", str(STAGE))


def _changed(identity: Identity) -> tuple[str, ...]:
    change = (f"--reuid={identity.uid}", f"--regid={identity.gid}", "--clear-groups", "--inh-caps=-all")
    return ("setpriv", *change, "--pdeathsig", "KILL", "--")


def _outermost_closed(unit: Path, identity: Identity) -> Path:
    return next(parent for parent in reversed(unit.parents) if not _traversable(parent, identity))


def plan_staging(paths: Iterable[Path], identity: Identity, fixed: tuple[Path, ...] = ()) -> Staging:
    """Return what must be staged for the identity to reach every path. Only root can stage.

    ``fixed`` are paths of the system and the interpreter, which are looked at once.
    """
    if not identity.foreign:
        return Staging()
    known = _fixed_units(fixed, identity)
    real = {path: path.resolve() for path in paths}
    closed: dict[Path, bool] = {}
    units = {unit for path in real.values() if (unit := _unit(path, identity, closed)) is not None} | known.units
    outermost = tuple(sorted(unit for unit in units if not units.intersection(unit.parents)))
    return Staging(outermost, known.real | real)


class _Known(NamedTuple):
    units: frozenset[Path]
    real: dict[Path, Path]


@lru_cache(maxsize=8)
def _fixed_units(paths: tuple[Path, ...], identity: Identity) -> _Known:
    real = {path: path.resolve() for path in paths}
    closed: dict[Path, bool] = {}
    return _Known(frozenset(filter(None, (_unit(path, identity, closed) for path in real.values()))), real)


def _unit(path: Path, identity: Identity, closed: dict[Path, bool]) -> Path | None:
    """Return the part of a path that ends just below the last directory that cannot be traversed."""
    below = path
    for parent in path.parents:
        if parent not in closed:
            closed[parent] = not _traversable(parent, identity)
        if closed[parent]:
            return below
        below = parent
    return None


def _traversable(directory: Path, identity: Identity) -> bool:
    try:
        status = directory.stat()
    except FileNotFoundError:
        return True
    if status.st_uid == identity.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == identity.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
