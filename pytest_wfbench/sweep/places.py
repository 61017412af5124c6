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
        name, message, remedy = str(error).split(": ")
        yield Problem(name, 0, "", "", message, remedy[:1].upper() + remedy[1:])
    except OSError as error:
        message = f"the cache directory {error.filename} cannot be made: {error.strerror}"
        yield Problem("WFBENCH_CACHE_DIR", 0, "", "", message, "Name a writable directory in WFBENCH_CACHE_DIR")
    results = user_path(options.results, directory)
    parent = next(path for path in (results, *results.parents) if os.path.lexists(path))
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        message = f"{shown_path(parent)} is no directory that can be written"
        yield Problem("--wfbench-results", 0, "", "", message, "Name a directory of your own")


def exposed(tasks: Sequence[LoadedTask], apart: Iterable[Path]) -> Iterator[Problem]:
    """Yield a problem for what is to be hidden but lies where every sandbox can read: below /usr or the interpreter."""
    shown = [path.resolve() for path in shown_directories(own_interpreter())]
    roots = (loaded.oracle_root for loaded in tasks if loaded.task.hides)
    hidden = (*(loaded.file for loaded in tasks), *roots, *apart)
    for path in dict.fromkeys(path for path in hidden if path):
        holder = next((top for top in shown if path.resolve().is_relative_to(top)), None)
        if holder is not None:
            message = f"lies in {holder}, which every sandbox can read"
            remedy = "Move it, or the virtual environment, so that neither holds the other"
            yield Problem(shown_path(path), 0, "", "", message, remedy)
