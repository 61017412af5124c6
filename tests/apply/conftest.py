"""A repository with skills and mirrors, and a candidate for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_wfbench.apply.journal import Change
from pytest_wfbench.apply.places import Root
from pytest_wfbench.apply.recover import recover
from pytest_wfbench.apply.swap import Swap, swap
from pytest_wfbench.apply.transaction import apply_changes
from pytest_wfbench.digests import digest_bytes

ROOTS = (".claude/skills", "mirror/skills")
NAMES = ("work/SKILL.md", "work/more.md", "plan/SKILL.md")
ADDED = "work/new/added.md"


def no_watch(step: str) -> None:
    pass


@dataclass
class Ground:
    """A repository and the changes that are applied to it."""

    path: Path
    old: dict[str, bytes] = field(default_factory=dict)
    new: dict[str, bytes] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[Change, ...]:
        def digest(path: str) -> str | None:
            return digest_bytes(self.old[path]) if path in self.old else None

        return tuple(Change(path=path, base=digest(path), new=digest_bytes(data)) for path, data in self.new.items())

    def apply(self, watch: Callable[[str], None] = no_watch, swapping: Swap = swap) -> None:
        with Root(self.path) as root:
            apply_changes(root, self.changes, self.new, watch, swapping)

    def recover(self) -> tuple[str, ...]:
        with Root(self.path) as root:
            return recover(root)

    def files(self) -> dict[str, bytes]:
        found = (path for path in sorted(self.path.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.path)): path.read_bytes() for path in found}

    def strays(self) -> list[str]:
        return [name for name in self.files() if "wfbench" in name]

    def state(self, but: Sequence[str] = ()) -> str:
        """Old or new where all files are so; what stands otherwise."""
        files = {name: data for name, data in self.files().items() if name not in but}
        for word, wanted in (("old", self.old), ("new", {**self.old, **self.new})):
            if files == {name: data for name, data in wanted.items() if name not in but}:
                return word
        return repr(sorted(files))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Three files under the skills' directory and one mirror of it, all changed; a fourth is added to both."""
    made = Ground(tmp_path / "repo")
    for root in ROOTS:
        for name in NAMES:
            made.old[f"{root}/{name}"] = f"old {name}\n".encode() * 40
            made.new[f"{root}/{name}"] = f"new {name}\n".encode() * 50
        made.new[f"{root}/{ADDED}"] = b"added\n"
    for path, data in made.old.items():
        (made.path / path).parent.mkdir(parents=True, exist_ok=True)
        (made.path / path).write_bytes(data)
    return made
