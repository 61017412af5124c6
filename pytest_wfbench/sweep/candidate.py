"""The candidate of a sweep: its files, held against what they would replace where they are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_wfbench.files import UnsafeFile, read_untrusted, user_path
from pytest_wfbench.matrix.arms import SKILL_ROOT
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.overlay import read_overlay
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.select import OVERLAY
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.plan import SCRIPT_LIMIT, FileArms
from pytest_wfbench.workspace.template import Template


def read_candidate(options: Options, directory: Path) -> tuple[tuple[Captured, ...], Sequence[Problem]]:
    """Return the files of the candidate that was asked for, none without one, and what is wrong with them."""
    if not options.candidate_overlay:
        return (), ()
    return read_overlay(user_path(options.candidate_overlay, directory))


def candidate_files(options: Options, directory: Path, overlay: Sequence[Captured]) -> Iterator[Path]:
    """Yield the candidate's files: they are kept as they are."""
    return (user_path(options.candidate_overlay or "", directory) / entry.name for entry in overlay)


def laid_over(
    tasks: Sequence[LoadedTask], arms: Mapping[Path, FileArms], templates: Mapping[str, Template]
) -> tuple[Path, ...]:
    """Return the snapshots that the candidate is tried on: those of tasks that an arm with it is paired with."""
    found = (
        templates[loaded.task.id].path
        for loaded in tasks
        if loaded.task.id in templates
        and any(arm.overlay and loaded.task.kind in arm.kinds for arm in arms[loaded.file].chosen)
    )
    return tuple(dict.fromkeys(found))


def bases_of(overlay: Sequence[Captured], tree: Path) -> dict[str, bytes]:
    """Return what a candidate's files would replace in a snapshot, by path; without those that are new there."""
    paths = [f"{SKILL_ROOT}/{entry.name}" for entry in overlay]
    return {path: data for path in paths if (data := _base(tree, path)) is not None}


def _base(tree: Path, path: str) -> bytes | None:
    try:
        return read_untrusted(tree, path, SCRIPT_LIMIT)
    except (UnsafeFile, OSError):
        return None


def base_problems(overlay: Sequence[Captured], trees: Sequence[Path]) -> Iterator[Problem]:
    """Yield a problem for a candidate that replaces different things in different tasks, or that changes nothing.

    Evidence is bound to one base for each file; and an overlay that changes nothing would only measure noise.
    """
    bases = [bases_of(overlay, tree) for tree in trees]
    laid = {f"{SKILL_ROOT}/{entry.name}": entry.data for entry in overlay}
    for path in laid:
        if len({base.get(path) for base in bases}) > 1:
            message = f"the repositories of the tasks differ in {path}, so there is no one base that it would replace"
            yield Problem(OVERLAY, 0, "", "", message, "Give each of these repositories a sweep of its own")
    if laid and bases and all(base == laid for base in bases):
        message = "the overlay is identical to the skills it would replace"
        yield Problem(OVERLAY, 0, "", "", message, "Change the candidate, or leave its arms out")
