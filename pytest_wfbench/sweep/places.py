"""Where a sweep reads and writes on this machine, looked at before anything is started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.options import Options
from pytest_wfbench.sandbox.identity import BadIdentity, cache_directory, choose_identity
from pytest_wfbench.sandbox.interpreter import own_interpreter
from pytest_wfbench.sandbox.rootfs import shown_directories


def unwritable(options: Options, directory: Path) -> Iterator[Problem]:
    """Yield a problem for a cache or a results directory that cannot be written, and for a uid that is none."""
    try:
        cache_directory(choose_identity())
    except BadIdentity as error:
        name, _, told = str(error).partition(": ")
        message, _, remedy = told.rpartition(": ")
        yield Problem(name, 0, "", "", message, remedy[:1].upper() + remedy[1:])
    except OSError as error:
        message = f"the cache directory {error.filename} cannot be made: {error.strerror}"
        yield Problem("WFBENCH_CACHE_DIR", 0, "", "", message, "Name a writable directory in WFBENCH_CACHE_DIR")
    if problem := closed(user_path(options.results, directory), "--wfbench-results"):
        yield problem


def closed(place: Path, option: str) -> Problem | None:
    """Return a problem where a directory, named by an option, cannot be written, or cannot be made; else none."""
    parent = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return None
    message = f"{shown_path(parent)} is no directory that can be written"
    return Problem(option, 0, "", "", message, "Name a directory of your own")


def hidden_places(tasks: Sequence[LoadedTask], apart: Iterable[Path]) -> tuple[Path, ...]:
    """Return what no sandbox may show: case files, what decides what cells are worth, and the places ``apart``."""
    roots = (loaded.oracle_root for loaded in tasks if loaded.oracle_root and loaded.task.hides)
    return tuple(dict.fromkeys((*(loaded.file for loaded in tasks), *roots, *apart)))


def touching(source: Path, hidden: Iterable[Path]) -> str | None:
    """Return what a directory that is to be shown has to do with a hidden place, in words, or none."""
    real = source.resolve()
    for path in sorted(hidden):
        if path.resolve().is_relative_to(real):
            return f"holds {path.name}"
        if real.is_relative_to(path.resolve()):
            return f"lies in {path.name}"
    return None


def exposed(tasks: Sequence[LoadedTask], apart: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for what is to be hidden but lies where every sandbox can read: below /usr or the interpreter."""
    shown = [path.resolve() for path in shown_directories(own_interpreter())]
    for path in hidden_places(tasks, apart):
        holder = next((top for top in shown if path.resolve().is_relative_to(top)), None)
        if holder is not None:
            message = f"lies in {holder}, which every sandbox can read"
            remedy = "Move it, or the virtual environment, so that neither holds the other"
            yield Problem(shown_path(path), 0, "", "", message, remedy)
