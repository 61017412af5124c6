"""Which arms are run, and the rules a set of arms must satisfy before anything is spent."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load_arms import LoadedArms
from pytest_wfbench.matrix.overlay import touched_skills
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.task import TaskKind

ARMS = "--wfbench-arms"
OVERLAY = "--wfbench-candidate-overlay"
PLUGIN = "--wfbench-plugin-dir"


class Choice(NamedTuple):
    """The arms of one file that were chosen, and the kinds of the tasks that they may be paired with."""

    loaded: LoadedArms
    arms: tuple[Arm, ...]
    kinds: frozenset[TaskKind]

    def fits(self, arm: Arm) -> bool:
        """Whether there is a task that an arm is paired with."""
        return not self.kinds.isdisjoint(arm.kinds)

    @property
    def paired(self) -> tuple[Arm, ...]:
        """The chosen arms that are paired with a task."""
        return tuple(arm for arm in self.arms if self.fits(arm))


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
            yield Problem(ARMS, 0, "", "", f"unknown arm {name!r}", remedy)


def idle_arms(choices: Sequence[Choice], names: Sequence[str] | None) -> Iterator[Problem]:
    """Yield a problem for every named arm that is paired with no task of the sweep."""
    busy = {arm.name for choice in choices for arm in choice.paired}
    declared = {arm.name: arm for choice in choices for arm in choice.arms}
    for name in names or ():
        if name in declared and name not in busy:
            kinds = " and ".join(declared[name].kinds)
            yield Problem(ARMS, 0, "", "", f"arm {name!r} is for {kinds} tasks, and there is none", "Leave the arm out")


def differing_arms(choices: Sequence[Choice]) -> Iterator[Problem]:
    """Yield a problem for every arm that is not the same in two files: its rows would be taken for those of one arm."""
    first: dict[str, tuple[Choice, Arm]] = {}
    for choice in choices:
        for arm in choice.paired:
            known, other = first.setdefault(arm.name, (choice, arm))
            if _way(arm) != _way(other):
                message = f"arm {arm.name!r} is another one than in {shown_path(known.loaded.file)}"
                yield choice.loaded.problem(arm.name, message, "Rename one of them, or run the two suites one by one")


def _way(arm: Arm) -> Arm:
    """Return what an arm does, whatever it is paired with."""
    return arm.model_copy(update={"default": False, "kinds": ()})


def incumbent_problems(choices: Sequence[Choice]) -> Iterator[Problem]:
    """Yield a problem for every candidate arm that is chosen without its incumbent."""
    for choice in choices:
        names = {arm.name for arm in choice.arms}
        for arm in choice.arms:
            if arm.candidate_of and arm.candidate_of not in names:
                message = f"candidate arm {arm.name!r} is selected without its incumbent {arm.candidate_of!r}"
                yield choice.loaded.problem(arm.name, message, f"Add {arm.candidate_of} to --wfbench-arms")


def plugin_problems(choices: Sequence[Choice], skills: Collection[str] | None) -> Iterator[Problem]:
    """Yield a problem where the arms that need a plugin and the plugin do not fit; ``skills`` are none without one."""
    using = [(choice.loaded, arm) for choice in choices for arm in choice.paired if arm.plugin]
    if skills is None:
        for loaded, arm in using:
            remedy = f"Name one with {PLUGIN} and --wfbench-plugin-version, or leave the arm out"
            yield loaded.problem(arm.name, f"arm {arm.name!r} needs an external plugin", remedy)
        return
    if not using:
        known = sorted({arm.name for choice in choices for arm in choice.loaded.arms if arm.plugin})
        remedy = f"Select one of {', '.join(known)}, or leave the plugin out" if known else "Leave the plugin out"
        yield Problem(PLUGIN, 0, "", "", "no selected arm uses the plugin", remedy)
    for loaded, arm in using:
        for skill in arm.skills:
            if skill not in skills:
                message = f"arm {arm.name!r} needs the skill {skill!r}, which the plugin lacks"
                remedy = f"It has {', '.join(sorted(skills)) or 'none'}; name those in the arm"
                yield loaded.problem(arm.name, message, remedy)


def overlay_problems(choices: Sequence[Choice], overlay: tuple[Captured, ...], plugin: bool) -> Iterator[Problem]:
    """Yield a problem for every rule that the arms of all files together break: exactly those an overlay exercises.

    With a ``plugin`` the comparators of a review's candidate belong to the set too.
    """
    selected = [(choice, arm) for choice in choices for arm in choice.arms if arm.overlay]
    if not overlay:
        for choice, arm in selected:
            remedy = "Name the candidate's files with --wfbench-candidate-overlay DIR"
            yield choice.loaded.problem(arm.name, f"candidate arm {arm.name!r} has no overlay to load", remedy)
        return
    declared = [arm for choice in choices for arm in choice.loaded.arms if arm.overlay]
    yield from _unevaluated(declared, overlay)
    required = required_candidates(declared, overlay)
    if required and not any(choice.fits(arm) for choice, arm in selected):
        yield Problem(OVERLAY, 0, "", "", "no selected arm loads the overlay", _select(required))
    elif required:
        yield from _inexact(choices, required)
        if plugin:
            yield from _comparators(choices, required)


def required_candidates(arms: Sequence[Arm], overlay: tuple[Captured, ...]) -> tuple[str, ...]:
    """Return the candidate arms that exercise what an overlay touches, each name once, in the order of the arms."""
    touched = touched_skills(overlay)
    return tuple(dict.fromkeys(arm.name for arm in arms if arm.overlay and touched & set(arm.skills)))


def _unevaluated(declared: Sequence[Arm], overlay: tuple[Captured, ...]) -> Iterator[Problem]:
    evaluated = sorted({skill for arm in declared for skill in arm.skills})
    for skill in sorted(touched_skills(overlay) - set(evaluated)):
        remedy = f"Skills of candidate arms: {', '.join(evaluated) or 'none'}"
        yield Problem(OVERLAY, 0, "", skill, f"no candidate arm has a skill {skill!r}", remedy)


def _inexact(choices: Sequence[Choice], required: Sequence[str]) -> Iterator[Problem]:
    selected = {arm.name for choice in choices for arm in choice.arms if arm.overlay}
    for name in required:
        if name not in selected:
            message = f"the overlay touches what {name!r} exercises, but it is not selected"
            yield Problem(OVERLAY, 0, "", name, message, f"Add {name} to --wfbench-arms")
    for choice in choices:
        for arm in choice.arms:
            if arm.overlay and arm.name not in required:
                message = f"the overlay touches nothing that {arm.name!r} exercises"
                yield choice.loaded.problem(arm.name, message, "Leave the arm out")


def _comparators(choices: Sequence[Choice], required: Sequence[str]) -> Iterator[Problem]:
    """A review's candidate is compared with the plugin's review too, where there is one."""
    for choice in choices:
        reviewing = any("review" in arm.kinds for arm in choice.paired if arm.name in required)
        for arm in choice.loaded.arms if reviewing else ():
            if arm.plugin and "review" in arm.kinds and arm not in choice.arms:
                message = f"a plugin is given, so the candidate's reviews are compared with those of {arm.name!r}"
                yield choice.loaded.problem(arm.name, message, f"Add {arm.name} to --wfbench-arms")


def _select(required: Sequence[str]) -> str:
    return f"Select {' and '.join(required)}, with the arms they are candidates of"
