"""A shelf of things that are made once, found again by their key, and never half there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from pytest_wfbench.files import write_atomic
from pytest_wfbench.sandbox.process import run_process

RECORD = "record.json"
_REMOVE_TIMEOUT = 120.0
_Record = TypeVar("_Record", bound=BaseModel)


class CleanupFailed(Exception):
    """A directory could not be removed; the message names it."""


def fetch(shelf: Path, key: str, model: type[_Record], make: Callable[[Path], _Record]) -> tuple[Path, _Record]:
    """Return the directory with a key and its record, calling ``make`` with an empty directory where there is none.

    What ``make`` put there appears under its key by one rename, once it returned; others that want it wait.
    """
    shelf.mkdir(parents=True, exist_ok=True, mode=0o755)
    place = shelf / key
    if (record := _read(place, model)) is not None:
        return place, record
    with FileLock(shelf / f"{key}.lock"):
        if (record := _read(place, model)) is not None:
            return place, record
        staged = shelf / f".{key}"
        remove_tree(staged)
        staged.mkdir(mode=0o755)
        try:
            record = make(staged)
            write_atomic(staged / RECORD, record.model_dump_json())
            remove_tree(place)
            os.replace(staged, place)  # noqa: PTH105
        finally:
            remove_tree(staged)
    return place, record


def remove_tree(path: Path) -> None:
    """Remove a directory that anybody may have filled: any depth, any mode, never through a link, in bounded time.

    Raises:
        CleanupFailed: when something is left.
    """
    if not os.path.lexists(path):
        return
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    for argv in (["rm", "-rf", "--"], ["chmod", "-R", "u+rwX", "--"], ["rm", "-rf", "--"]):
        ended = run_process([*argv, str(path)], env=env, timeout=_REMOVE_TIMEOUT)
        if not os.path.lexists(path):
            return
    raise CleanupFailed(f"{path}: cannot be removed: {ended.stderr.decode(errors='replace').strip()[-300:]}")


def _read(place: Path, model: type[_Record]) -> _Record | None:
    try:
        return model.model_validate_json((place / RECORD).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
