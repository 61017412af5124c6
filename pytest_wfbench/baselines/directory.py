"""Baselines as files below a directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.baselines.store import KINDS, StoreError
from pytest_wfbench.evidence.baseline import BASELINE_LIMIT
from pytest_wfbench.files import UnsafeFile, read_untrusted, write_atomic


@dataclass(frozen=True)
class DirectoryStore:
    """A directory; it is made when the first baseline is filed."""

    root: Path

    @property
    def shown(self) -> str:
        """The directory."""
        return str(self.root)

    def names(self) -> Iterator[str]:
        """Yield the paths of files two directories down."""
        for kind in KINDS:
            for path in sorted((self.root / kind).glob("*/*")):
                yield path.relative_to(self.root).as_posix()

    def read(self, name: str) -> bytes:
        """Return a file's bytes; no link is followed."""
        try:
            return read_untrusted(self.root, name, BASELINE_LIMIT)
        except (UnsafeFile, OSError) as error:
            raise StoreError(f"{self.root / name}: {error}") from error

    def write(self, name: str, data: bytes) -> None:
        """Write a file in one go."""
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}. Name a directory that you may write in") from error
