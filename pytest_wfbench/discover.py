"""Which case files lie under pytest's arguments. Runs in every pytest start, so it looks at names only."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SUFFIX = ".cases.yaml"


def case_files(config: pytest.Config) -> list[Path]:
    """Return the case files named by or lying below the arguments, in the order pytest collects them.

    Passed over are, as pytest does, directories that match ``norecursedirs`` or hold a virtual environment, and what
    ``--ignore`` or ``--ignore-glob`` names; besides, links to directories, and names that begin with a dot.
    """
    base = config.invocation_params.dir
    rules = _Rules(
        patterns=tuple(config.getini("norecursedirs")),
        ignored=frozenset(_absolute(base, path) for path in config.getoption("ignore", None) or ()),
        globs=tuple(_absolute(base, path) for path in config.getoption("ignore_glob", None) or ()),
        environments=bool(config.getoption("collect_in_virtualenv", False)),
    )
    found: dict[str, None] = {}
    for argument in config.args:
        path = _absolute(base, str(argument).partition("[")[0].partition("::")[0])
        if os.path.isdir(path):  # noqa: PTH112
            found.update(dict.fromkeys(_below(path, rules)))
        elif path.endswith(SUFFIX):
            found[path] = None
    return [Path(path) for path in found]


@dataclass(frozen=True)
class _Rules:
    patterns: tuple[str, ...]
    ignored: frozenset[str]
    globs: tuple[str, ...]
    environments: bool

    def ignores(self, path: str) -> bool:
        """Whether a file or directory was excluded by name."""
        return path in self.ignored or any(fnmatch.fnmatch(path, pattern) for pattern in self.globs)

    def passes_over(self, entry: os.DirEntry[str]) -> bool:
        """Whether nothing below a directory is collected."""
        if entry.name == "__pycache__" or any(_matches(pattern, entry) for pattern in self.patterns):
            return True
        marks = () if self.environments else ("pyvenv.cfg", "conda-meta/history")
        return any(os.path.isfile(os.path.join(entry.path, mark)) for mark in marks)  # noqa: PTH118, PTH113


def _absolute(base: Path, path: str | os.PathLike[str]) -> str:
    return os.path.abspath(os.path.join(base, path))  # noqa: PTH118, PTH100  (as pytest does: links stay)


def _matches(pattern: str, entry: os.DirEntry[str]) -> bool:
    """Match as pytest does: a pattern with a slash against the path, any other against the name."""
    if "/" not in pattern:
        return fnmatch.fnmatch(entry.name, pattern)
    return fnmatch.fnmatch(entry.path, pattern if pattern.startswith("/") else f"*/{pattern}")


def _below(directory: str, rules: _Rules) -> Iterator[str]:
    """Yield case files in order of names, a directory's where its own name stands. Depth costs no recursion."""
    pending = [iter(_entries(directory))]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
        elif rules.ignores(entry.path):
            continue
        elif entry.is_dir(follow_symlinks=False):
            if not rules.passes_over(entry):
                pending.append(iter(_entries(entry.path)))
        elif entry.name.endswith(SUFFIX) and not entry.name.startswith(".") and not entry.is_dir():
            yield entry.path


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
