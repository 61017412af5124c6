"""Everything that is asked for, proven before anything is spent; every fault of all of it at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.bindings import proof_digest
from pytest_wfbench.matrix.defaults import with_limits
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load import LoadedTask, load_cases
from pytest_wfbench.matrix.load_arms import LoadedArms, arms_file_for, load_arms
from pytest_wfbench.matrix.overlay import read_overlay
from pytest_wfbench.matrix.problems import InvalidCases, Problem
from pytest_wfbench.matrix.select import (
    Choice,
    chosen_arms,
    idle_arms,
    incumbent_problems,
    overlay_problems,
    plugin_problems,
    unknown_arms,
)
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.matrix.task import TaskKind
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.budgets import terms_of, unpriced
from pytest_wfbench.sweep.compared import comparison_problems
from pytest_wfbench.sweep.dependencies import with_dependencies
from pytest_wfbench.sweep.external import FoundPlugin, find_plugin, kept_plugin
from pytest_wfbench.sweep.judge import read_judge
from pytest_wfbench.sweep.places import exposed, unwritable
from pytest_wfbench.sweep.plan import FileArms, Plan, base_of, closed_directories, sandbox_name
from pytest_wfbench.sweep.recording import record_directory, record_problems
from pytest_wfbench.sweep.reviewed import review_problems
from pytest_wfbench.sweep.scripts import find_cassettes, load_scripts, uncovered, unjudgeable
from pytest_wfbench.sweep.secrets import written_keys
from pytest_wfbench.sweep.snapshot import MachineUnfit, snapshot
from pytest_wfbench.sweep.subjects import find_runtimes, key_problems, moving_problems, read_subjects
from pytest_wfbench.sweep.wishes import version_problems, wish_problems
from pytest_wfbench.usage.prices import BadPrices, PriceTable
from pytest_wfbench.workspace.skills import missing_skills
from pytest_wfbench.workspace.startstate import StartState
from pytest_wfbench.workspace.template import Template

Value = TypeVar("Value")
ALL_KINDS: frozenset[TaskKind] = frozenset(get_args(TaskKind))


class Findings:
    """Every problem so far; values are taken, and what was wrong with them is kept."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def take(self, found: tuple[Value, Sequence[Problem]]) -> Value:
        """Return a value, and keep the problems that came with it."""
        self._problems.extend(found[1])
        return found[0]

    def add(self, problems: Iterable[Problem]) -> None:
        """Keep some problems."""
        self._problems.extend(problems)

    @property
    def none(self) -> bool:
        """Whether nothing is wrong so far."""
        return not self._problems

    def settle(self) -> None:
        """Raise InvalidCases if there is any problem."""
        if self._problems:
            raise InvalidCases(self._problems)


def prepare(files: Sequence[Path], options: Options, directory: Path, *, probe: bool = True) -> Plan:
    """Read and prove everything: case files, arms, subjects, overlay, repositories, skills, cassettes, prices, agents.

    Args:
        files: case files, absolute.
        directory: where pytest was started; paths typed as options are relative to it.
        probe: whether the agents must be found on this machine.

    Raises:
        InvalidCases: with every fault of all of it.
        MachineUnfit: when nothing is wrong with it, but no sandbox works on this machine.
    """
    found = Findings()
    found.add(unwritable(options, directory))
    found.settle()
    found.add(_sandbox_problems(options, os.environ))
    found.settle()
    tasks = found.take(with_limits(found.take(_tasks(files)), options.limits))
    files = [file for file in files if any(loaded.file == file for loaded in tasks)] or files
    # Of a file with faults not every task is known.
    kinds = {file: (_kinds(tasks, file) if found.none else None) or ALL_KINDS for file in files}
    overlay = found.take(_overlay(options, directory))
    external = found.take(find_plugin(options, directory))
    arms = found.take(_arms(kinds, options, directory, overlay, external))
    subjects = found.take(read_subjects(files, options, directory))
    cassettes = found.take(find_cassettes(files, directory, subjects))
    answered = [loaded for loaded in tasks if any(loaded.task.kind in arm.kinds for arm in arms[loaded.file].chosen)]
    judge = found.take(read_judge(options, answered, directory, os.environ))
    if judge and judge.cassettes:
        cassettes[judge.model] = judge.cassettes
    runtimes = found.take(find_runtimes(subjects, directory, probe))
    apart = tuple(_apart(options, directory, subjects, [*cassettes.values(), *(entry.file for entry in arms.values())]))
    if options.sandbox == "bwrap":
        found.add(exposed(tasks, apart))
    unfit: MachineUnfit | None = None
    try:
        templates = found.take(snapshot(tasks, sandbox_name(options), apart))
    except MachineUnfit as error:
        templates, unfit = {}, error
    templates = found.take(with_dependencies(tasks, templates, apart))
    plugin = found.take(kept_plugin(external, options, tasks, apart))
    scripts = found.take(load_scripts(cassettes))
    for task in tasks:
        if task.task.id in templates:
            found.add(_skill_problems(task, templates[task.task.id], arms[task.file].chosen))
    found.add(key_problems(subjects))
    written = [*files, *(entry.file for entry in arms.values()), *_overlay_files(options, directory, overlay)]
    found.add(written_keys(written))
    found.add(moving_problems(subjects, arms.values()))
    found.add(record_problems(options, directory, subjects, _repositories(tasks)))
    found.add(wish_problems(subjects, options))
    found.add(version_problems(runtimes, options))
    found.add(_price_problems(options, directory))
    found.add(comparison_problems(options, directory))
    found.add(_proof_problems(tasks))
    found.add(review_problems(tasks, templates, sandbox_name(options)))
    found.add(_unsupported(tasks, options))
    found.add(_same_as_base(overlay, templates))
    found.settle()
    if unfit is not None:
        raise unfit
    plan = Plan(
        directory=directory,
        options=options,
        tasks=tasks,
        arms=arms,
        subjects=subjects,
        templates=templates,
        runtimes=runtimes,
        cassettes=cassettes,
        overlay=overlay,
        plugin=plugin,
        judge=judge,
    )
    found.add(uncovered(scripts, plan.runnable()))
    found.add(unjudgeable(scripts, judge.model if judge else "", plan.runnable()))
    found.add(unpriced(terms_of(options, directory), plan.runnable(), scripts, judge.model if judge else None))
    found.settle()
    return plan


def _tasks(files: Sequence[Path]) -> tuple[tuple[LoadedTask, ...], Sequence[Problem]]:
    """Return the tasks of all files but those that lie inside a task's repository, which is never collected."""
    loaded = load_cases(files)
    closed = closed_directories(loaded.tasks)
    outer = [file for file in files if not closed.intersection(file.parents)]
    if len(outer) < len(files):
        loaded = load_cases(outer)
    return loaded.tasks, loaded.problems


def _apart(options: Options, directory: Path, subjects: Sequence[Subject], more: Iterable[Path]) -> Iterator[Path]:
    """Yield what no snapshot may hold: results, the candidate, arms, cassettes, and scripts that act as agents."""
    yield user_path(options.results, directory)
    if options.candidate_overlay:
        yield user_path(options.candidate_overlay, directory)
    if (recorded := record_directory(options, directory)) is not None:
        yield recorded
    yield from more
    yield from (user_path(s.model, directory) for s in subjects if not get_agent(s.agent).uses_model)


def _repositories(tasks: Sequence[LoadedTask]) -> Iterator[Path]:
    """Yield the repositories that hold nothing of the harness's own, so that all of them is shown."""
    return (
        loaded.repository
        for loaded in tasks
        if loaded.repository is not None and loaded.repository not in loaded.file.parents
    )


def _overlay(options: Options, directory: Path) -> tuple[tuple[Captured, ...], Sequence[Problem]]:
    if not options.candidate_overlay:
        return (), ()
    return read_overlay(user_path(options.candidate_overlay, directory))


def _overlay_files(options: Options, directory: Path, overlay: tuple[Captured, ...]) -> Iterator[Path]:
    """Yield the candidate's files: they are kept as they are."""
    return (user_path(options.candidate_overlay or "", directory) / entry.name for entry in overlay)


def _same_as_base(overlay: tuple[Captured, ...], templates: Mapping[str, Template]) -> Iterator[Problem]:
    """An overlay that changes nothing would only measure noise."""
    trees = {template.path for template in templates.values()}
    if overlay and trees and all(base_of(entry, tree) == entry.data for entry in overlay for tree in trees):
        message = "the overlay is identical to the skills it would replace"
        yield Problem("--wfbench-candidate-overlay", 0, "", "", message, "Change the candidate, or leave its arms out")


def _kinds(tasks: Sequence[LoadedTask], file: Path) -> frozenset[TaskKind]:
    return frozenset(loaded.task.kind for loaded in tasks if loaded.file == file)


def _arms(
    kinds: Mapping[Path, frozenset[TaskKind]],
    options: Options,
    directory: Path,
    overlay: tuple[Captured, ...],
    plugin: FoundPlugin | None,
) -> tuple[dict[Path, FileArms], list[Problem]]:
    """Return the arms of each case file, whose tasks are of these ``kinds``."""
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
    result = {f: _file_arms(choices[p], read[p]) for f, p in by_file.items()}
    return result, problems


def _file_arms(choice: Choice, read: LoadedArms) -> FileArms:
    return FileArms(file=read.file, chosen=choice.paired, declared=read.arms, mirrors=read.mirrors)


def _together(kinds: Iterable[frozenset[TaskKind]]) -> frozenset[TaskKind]:
    return frozenset[TaskKind]().union(*kinds)


def _set_problems(
    choices: Sequence[Choice], options: Options, overlay: tuple[Captured, ...], plugin: FoundPlugin | None
) -> Iterator[Problem]:
    """Yield what is wrong with the arms of all files together; of a faulty overlay or plugin nothing more is said."""
    yield from idle_arms(choices, options.arms)
    yield from incumbent_problems(choices)
    if overlay or not options.candidate_overlay:
        yield from overlay_problems(choices, overlay, plugin is not None)
    if plugin or not (options.plugin_dir or options.plugin_version):
        yield from plugin_problems(choices, plugin.skills if plugin else None)


def _skill_problems(loaded: LoadedTask, template: Template, arms: Sequence[Arm]) -> Iterator[Problem]:
    start = StartState(template, None, template.snapshot_commit, template.digest)
    for arm in arms:
        if loaded.task.kind not in arm.kinds or arm.plugin:
            continue
        for skill in missing_skills(start, arm.skills):
            message = f"arm {arm.name!r} needs the skill {skill!r}, which the repository lacks"
            yield loaded.problem("repo", message, f"Add .claude/skills/{skill}/SKILL.md or leave the arm out")


def _price_problems(options: Options, directory: Path) -> Iterator[Problem]:
    if options.prices:
        try:
            PriceTable.load(user_path(options.prices, directory))
        except BadPrices as error:
            yield Problem("--wfbench-prices", 0, "", "", str(error), "Name a JSON file in LiteLLM's schema")


def _proof_problems(tasks: Sequence[LoadedTask]) -> Iterator[Problem]:
    """An in-process oracle proves nothing until it is on record which tests must run."""
    for loaded in tasks:
        spec, expected = loaded.task.oracle, loaded.hidden.expected
        if spec is None or spec.results != "junit":
            continue
        if expected is None:
            yield loaded.problem("oracle", "not proven: no record of which tests must run", "Run `wfbench check` on it")
        elif expected.oracle_digest != proof_digest(loaded):
            yield loaded.problem("oracle", "the oracle changed since it was proven", "Run `wfbench check` again")


def _sandbox_problems(options: Options, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Without a boundary agents see and change the machine: never where nobody looks on, and secrets are at hand."""
    if options.sandbox == "host" and environ.get("CI"):
        message = "host is no boundary, so it is refused where CI is set"
        yield Problem("--wfbench-sandbox", 0, "", "", message, "Leave the option out: see `wfbench doctor`")


def _unsupported(tasks: Sequence[LoadedTask], options: Options) -> Iterator[Problem]:
    """What reads well but would be passed over in silence is refused."""
    for loaded in tasks:
        task = loaded.task
        if task.mcp and options.sandbox == "host":
            yield loaded.problem("mcp", "MCP servers run in a sandbox of their own: host has none", "Leave the key out")
