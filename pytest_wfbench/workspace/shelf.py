"""A shelf of things that are made once, found again by their key, and never half there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from pytest_wfbench.files import write_atomic
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.space import require_room

RECORD = "record.json"
# So little left where something failed is taken for its cause.
FLOOR = 16 << 20
_Record = TypeVar("_Record", bound=BaseModel)


def fetch(shelf: Path, key: str, model: type[_Record], make: Callable[[Path], _Record]) -> tuple[Path, _Record]:
    """Return the directory with a key and its record, calling ``make`` with an empty directory where there is none.

    What ``make`` put there appears under its key by one rename, once it returned; others that want it wait.

    Raises:
        OSError: with ENOSPC where ``make`` failed, whatever it said, and the disk is full.
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
        except Exception:
            # Programs say in many ways that a disk is full, and the first who finds it so is not the last to fail.
            require_room(staged, FLOOR)
            raise
        finally:
            remove_tree(staged)
    return place, record


def _read(place: Path, model: type[_Record]) -> _Record | None:
    try:
        return model.model_validate_json((place / RECORD).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
