"""The arms of a sweep: those of each case file, judged together, and whether repositories have their skills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.arms import SKILL_ROOT
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.load_arms import LoadedArms, arms_file_for, load_arms
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.select import (
    Choice,
    chosen_arms,
    differing_arms,
    idle_arms,
    incumbent_problems,
    overlay_problems,
    plugin_problems,
    unknown_arms,
)
from pytest_wfbench.matrix.task import TaskKind
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.external import FoundPlugin
from pytest_wfbench.sweep.plan import FileArms
from pytest_wfbench.workspace.skills import missing_skills
from pytest_wfbench.workspace.startstate import StartState
from pytest_wfbench.workspace.template import Template

ALL_KINDS: frozenset[TaskKind] = frozenset(get_args(TaskKind))


def kinds_of(tasks: Sequence[LoadedTask], file: Path) -> frozenset[TaskKind]:
    """Return the kinds of the tasks of one case file."""
    return frozenset(loaded.task.kind for loaded in tasks if loaded.file == file)


def pair_arms(
    kinds: Mapping[Path, frozenset[TaskKind]],
    options: Options,
    directory: Path,
    overlay: tuple[Captured, ...],
    plugin: FoundPlugin | None,
) -> tuple[dict[Path, FileArms], list[Problem]]:
    """Return the arms of each case file, whose tasks are of these ``kinds``, and what is wrong with all of them."""
    named = user_path(options.arms_file, directory) if options.arms_file else None
    by_file = {file: arms_file_for(file, named) for file in kinds}
    read: dict[Path, LoadedArms] = {path: load_arms(path) for path in dict.fromkeys(by_file.values())}
    problems = [problem for loaded in read.values() for problem in loaded.problems]
    if not problems:
        problems.extend(unknown_arms(list(read.values()), options.arms))
    choices = {
        path: Choice(
            loaded=loaded,
            arms=chosen_arms(loaded, options.arms),
            kinds=_together(kinds[file] for file, own in by_file.items() if own == path),
        )
        for path, loaded in read.items()
    }
    problems.extend(_set_problems(list(choices.values()), options, overlay, plugin))
    return {file: _file_arms(choices[path]) for file, path in by_file.items()}, problems


def _file_arms(choice: Choice) -> FileArms:
    read = choice.loaded
    return FileArms(file=read.file, chosen=choice.paired, declared=read.arms, mirrors=read.mirrors)


def _together(kinds: Iterable[frozenset[TaskKind]]) -> frozenset[TaskKind]:
    return frozenset[TaskKind]().union(*kinds)


def _set_problems(
    choices: Sequence[Choice], options: Options, overlay: tuple[Captured, ...], plugin: FoundPlugin | None
) -> Iterator[Problem]:
    """Yield what is wrong with the arms of all files together; of a faulty overlay or plugin nothing more is said."""
    yield from idle_arms(choices, options.arms)
    yield from differing_arms(choices)
    yield from incumbent_problems(choices)
    if overlay or not options.candidate_overlay:
        yield from overlay_problems(choices, overlay, plugin is not None)
    if plugin or not (options.plugin_dir or options.plugin_version):
        yield from plugin_problems(choices, plugin.skills if plugin else None)


def skill_problems(
    tasks: Sequence[LoadedTask], templates: Mapping[str, Template], arms: Mapping[Path, FileArms]
) -> Iterator[Problem]:
    """Yield a problem for each skill of an arm that a repository lacks; a plugin brings its own."""
    for loaded in tasks:
        template = templates.get(loaded.task.id)
        if template is None:
            continue
        start = StartState(template, None, template.snapshot_commit, template.digest)
        for arm in arms[loaded.file].chosen:
            if arm.plugin or loaded.task.kind not in arm.kinds:
                continue
            for skill in missing_skills(start, arm.skills):
                message = f"arm {arm.name!r} needs the skill {skill!r}, which the repository lacks"
                yield loaded.problem("repo", message, f"Add {SKILL_ROOT}/{skill}/SKILL.md or leave the arm out")
