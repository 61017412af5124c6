"""The paths of a repository that no snapshot shows, and the refusal to show the bytes of a private one elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from pytest_wfbench.workspace.repository import RepositoryProblem
from pytest_wfbench.workspace.traces import is_below

# Smaller files are alike by chance: empty packages, one-line settings.
TELLING_BYTES = 128


class Hiding:
    """Knows which paths are hidden: those that a task calls ``private``, and those ``apart``, the harness's own."""

    def __init__(self, private: Iterable[str], apart: Iterable[str]) -> None:
        self._private = _bytes_of(private)
        self._apart = _bytes_of(apart)

    def hides(self, path: bytes) -> bool:
        """Whether a path is hidden, or below a hidden one."""
        return is_below(path, self._private) or is_below(path, self._apart)

    def refuse_copies(self, source: Path, files: Sequence[tuple[bytes, bytes]], size: Callable[[bytes], int]) -> None:
        """Refuse a tree that shows the bytes of a private file under another name (a copy, a hard link).

        Args:
            source: the repository, for the message.
            files: (path, what stands for its bytes) of all regular files.
            size: how many bytes they are.

        Raises:
            RepositoryProblem: naming both.
        """
        private = {content: path for path, content in files if is_below(path, self._private)}
        for path, content in files:
            if content in private and not self.hides(path) and size(content) >= TELLING_BYTES:
                shown, hidden = (os.fsdecode(name) for name in (path, private[content]))
                raise RepositoryProblem(
                    f"{source}: {shown!r} holds the bytes of the private {hidden!r}: name it in `private` too, or make "
                    "the two differ"
                )


def _bytes_of(paths: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(os.fsencode(PurePosixPath(path)) for path in paths)
