"""Which arms are run, and the rules a set of arms must satisfy before anything is spent."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load_arms import LoadedArms
from pytest_wfbench.matrix.overlay import touched_skills
from pytest_wfbench.matrix.problems import Problem

OVERLAY = "--wfbench-candidate-overlay"


def chosen_arms(loaded: LoadedArms, names: Sequence[str] | None) -> tuple[Arm, ...]:
    """Return the named arms in the order of the file, or those marked default."""
    return tuple(arm for arm in loaded.arms if (arm.name in names if names is not None else arm.default))


def unknown_arms(files: Sequence[LoadedArms], names: Sequence[str] | None) -> Iterator[Problem]:
    """Yield a problem for every name that no arms file declares."""
    known = sorted({name for loaded in files for name, _ in loaded.lines})
    for name in names or ():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean {close[0]}?" if close else f"Known arms: {', '.join(known)}"
            yield Problem("--wfbench-arms", 0, "", "", f"unknown arm {name!r}", remedy)


def set_problems(loaded: LoadedArms, chosen: Sequence[Arm], overlay: tuple[Captured, ...]) -> Iterator[Problem]:
    """Yield a problem for every rule the chosen set breaks: incumbents, and exactly the arms an overlay exercises."""
    names = {arm.name for arm in chosen}
    for arm in chosen:
        if arm.candidate_of and arm.candidate_of not in names:
            message = f"candidate arm {arm.name!r} is selected without its incumbent {arm.candidate_of!r}"
            yield loaded.problem(arm.name, message, f"Add {arm.candidate_of} to --wfbench-arms")
        if arm.overlay and not overlay:
            remedy = "Name the candidate's files with --wfbench-candidate-overlay DIR"
            yield loaded.problem(arm.name, f"candidate arm {arm.name!r} has no overlay to load", remedy)
        if arm.plugin:
            yield loaded.problem(arm.name, "arms with an external plugin cannot be run yet", "Leave the arm out")
    if overlay:
        yield from _overlay_problems(loaded, chosen, overlay)


def required_candidates(arms: Sequence[Arm], overlay: tuple[Captured, ...]) -> tuple[str, ...]:
    """Return the candidate arms that exercise what an overlay touches, in the order of the file."""
    touched = touched_skills(overlay)
    return tuple(arm.name for arm in arms if arm.overlay and touched & set(arm.skills))


def _overlay_problems(loaded: LoadedArms, chosen: Sequence[Arm], overlay: tuple[Captured, ...]) -> Iterator[Problem]:
    evaluated = sorted({skill for arm in loaded.arms if arm.overlay for skill in arm.skills})
    for skill in sorted(touched_skills(overlay) - set(evaluated)):
        remedy = f"Skills of candidate arms: {', '.join(evaluated) or 'none'}"
        yield Problem(OVERLAY, 0, "", skill, f"no candidate arm has a skill {skill!r}", remedy)
    required = required_candidates(loaded.arms, overlay)
    selected = tuple(arm.name for arm in chosen if arm.overlay)
    if required and not selected:
        yield Problem(OVERLAY, 0, "", "", "no selected arm loads the overlay", _select(required))
    for name in required if selected else ():
        if name not in selected:
            message = f"the overlay touches what {name!r} exercises, but it is not selected"
            yield Problem(OVERLAY, 0, "", name, message, f"Add {name} to --wfbench-arms")
    for name in selected if required else ():
        if name not in required:
            yield loaded.problem(name, f"the overlay touches nothing that {name!r} exercises", "Leave the arm out")


def _select(required: Sequence[str]) -> str:
    return f"Select {' and '.join(required)}, with the arms they are candidates of"
