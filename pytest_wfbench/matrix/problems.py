"""A fault in something the user wrote, with the place and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CLIP = 120


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
        """One line; what could move a terminal's cursor is escaped."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        subject = f" task {_clipped(self.task)}" if self.task else ""
        key = f" [{_clipped(self.key)}]" if self.key else ""
        head = f"{place}:{subject}{key}".rstrip(":") + ":"
        end = "" if self.message.endswith((".", "?", "!")) else "."
        return printable(f"{head} {self.message}{end} {self.remedy}")


class InvalidCases(Exception):
    """Every fault of every file that was read, in the order of file and line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def _clipped(text: str) -> str:
    return text if len(text) <= CLIP else text[: CLIP - 1] + "…"


def printable(text: str) -> str:
    """Return the text with every character escaped that does not print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shown_path(path: Path) -> str:
    """Return the path relative to the current directory where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
