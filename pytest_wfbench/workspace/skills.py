"""The skills that a start state offers, and whether they are still what they were."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_wfbench.digests import digest_value
from pytest_wfbench.sandbox.spec import HOME, Mount, Sandbox, Tmpfs
from pytest_wfbench.workspace.overlay import SKILL_ROOTS, stacked
from pytest_wfbench.workspace.program import run_inside
from pytest_wfbench.workspace.startstate import StartState

SKILL_FILE = "SKILL.md"
USER_LEVEL = (
    (".claude", ("skills",)),
    (".agents", ("skills",)),
    (".codex", ("skills",)),
    (".config", ()),
    (".config/opencode", ("skills", "skill")),
)
_PARENT_SIZE = 256 << 20


def empty_user_skills() -> tuple[Mount, ...]:
    """Return the mounts by which an agent finds no skills in its home, and can put none there.

    What is mounted cannot be renamed, but its parent could: so each parent is a mount of its own, too.
    """
    return tuple(
        mount
        for parent, names in USER_LEVEL
        for mount in (
            Tmpfs(f"{HOME}/{parent}", _PARENT_SIZE),
            *(Tmpfs(f"{HOME}/{parent}/{name}", 1 << 12, sealed=True) for name in names),
        )
    )


def missing_skills(start: StartState, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the named skills for which no skill directory of the start state has a ``SKILL.md``."""
    return tuple(name for name in names if not any(_has_skill(start, f"{root}/{name}") for root in SKILL_ROOTS))


def skill_digest(mounts: tuple[Mount, ...], names: Sequence[str], sandbox: Sandbox) -> str | None:
    """Return one digest of the named skills as the mounts of a workspace show them; none if there is none of them.

    Raises:
        ProgramFailed: when it cannot be computed.
    """
    directories = tuple(f"{root}/{name}" for name in sorted(names) for root in SKILL_ROOTS)
    found = run_inside(sandbox, "files_inside", "digests", directories, mounts)
    there = [pair for pair in zip(directories, found, strict=True) if pair[1] is not None]
    return digest_value(there) if there else None


def _has_skill(start: StartState, directory: str) -> bool:
    for layer in reversed(stacked(start.layers, directory)):
        place = layer / SKILL_FILE
        if place.is_symlink() or place.exists():
            return place.is_file() and not place.is_symlink()
    return False
