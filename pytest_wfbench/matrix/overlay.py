"""A candidate overlay: Markdown files laid over the skills of candidate arms."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.fields import SLUG
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.problems import Problem, shown_path

MAX_FILES = 64
MAX_BYTES = 4 << 20
REMEDY = "An overlay holds <skill>/…/*.md files only"


def read_overlay(directory: Path) -> tuple[tuple[Captured, ...], tuple[Problem, ...]]:
    """Capture ``<skill>/…/*.md`` below a directory; anything else in it is refused by name."""
    shown = shown_path(directory)
    if not directory.is_dir() or directory.is_symlink():
        return (), (Problem(shown, 0, "", "", "not a directory", "Check --wfbench-candidate-overlay"),)
    files: list[Captured] = []
    problems: list[Problem] = []
    for relative in _names(directory):
        if len(files) + len(problems) >= MAX_FILES:
            problems.append(Problem(shown, 0, "", "", "more than 64 files", "Make the overlay smaller"))
            break
        try:
            files.append(_capture(directory, relative))
        except (UnsafeFile, OSError) as error:
            problems.append(Problem(shown, 0, "", relative, _reason(error, relative), REMEDY))
        if sum(len(entry.data) for entry in files) > MAX_BYTES:
            problems.append(Problem(shown, 0, "", "", "more than 4 MiB together", "Make the overlay smaller"))
            break
    if not files and not problems:
        problems.append(Problem(shown, 0, "", "", "the overlay is empty", "Add <skill>/SKILL.md"))
    return tuple(files), tuple(problems)


def _names(directory: Path) -> Iterator[str]:
    """Yield every name that is not a readable directory, links to directories included, in order."""
    unreadable: list[str] = []
    for top, inner, names in os.walk(directory, onerror=lambda error: unreadable.append(str(error.filename))):
        inner.sort()
        links = [name for name in inner if (Path(top) / name).is_symlink()]
        for name in sorted([*names, *links]):
            yield str((Path(top) / name).relative_to(directory))
    yield from (str(Path(name).relative_to(directory)) for name in sorted(unreadable))


def _capture(directory: Path, relative: str) -> Captured:
    parts = Path(relative).parts
    if not relative.isprintable():
        raise UnsafeFile("the name holds control characters or is not UTF-8")
    if not relative.endswith(".md"):
        raise UnsafeFile("not a Markdown file")
    if len(parts) < 2 or not SLUG.match(parts[0]):
        raise UnsafeFile("not below a skill's directory")
    return Captured(name=relative, data=read_untrusted(directory, relative, MAX_BYTES))


def _reason(error: UnsafeFile | OSError, relative: str) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error).removeprefix(f"{relative}: ")


def touched_skills(files: tuple[Captured, ...]) -> frozenset[str]:
    """Return the skills an overlay touches: the first part of each path."""
    return frozenset(Path(entry.name).parts[0] for entry in files)
