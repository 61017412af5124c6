"""A fault in something the user wrote, with the place and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Problem:
    """One fault: where it is (``line`` from 1, 0 when the whole file is meant), what it is, and what to do."""

    file: str
    line: int
    task: str
    key: str
    message: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        subject = f" task {self.task}" if self.task else ""
        key = f" [{self.key}]" if self.key else ""
        head = f"{place}:{subject}{key}".rstrip(":") + ":"
        return f"{head} {self.message}. {self.remedy}"


class InvalidCases(Exception):
    """Every fault of every file that was read, in the order of file and line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def shown_path(path: Path) -> str:
    """Return the path relative to the current directory where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
