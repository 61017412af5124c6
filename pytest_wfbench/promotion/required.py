"""Which candidate arms an overlay has to be measured under."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from pytest_wfbench.matrix.arms import SKILL_ROOT, Arm


def touched_skills(paths: Iterable[str]) -> frozenset[str]:
    """Return the skills that overlay files belong to; paths are below the skill root or begin with it."""
    root = PurePosixPath(SKILL_ROOT)
    inner = [PurePosixPath(path) for path in paths]
    return frozenset((p.relative_to(root) if p.is_relative_to(root) else p).parts[0] for p in inner if p.parts)


def required_arms(skills: Iterable[str], arms: Iterable[Arm]) -> tuple[str, ...]:
    """Return the candidate arms among ``arms`` that exercise any of the skills, sorted."""
    touched = frozenset(skills)
    return tuple(sorted(arm.name for arm in arms if arm.overlay and touched.intersection(arm.skills)))
