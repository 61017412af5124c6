"""Everything that is asked for, proven before anything is spent; every fault of all of it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.bindings import proof_digest
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load import LoadedTask, load_cases
from pytest_wfbench.matrix.load_arms import LoadedArms, arms_file_for, load_arms
from pytest_wfbench.matrix.overlay import read_overlay
from pytest_wfbench.matrix.problems import InvalidCases, Problem
from pytest_wfbench.matrix.select import chosen_arms, set_problems, unknown_arms
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.plan import FileArms, Plan, base_of
from pytest_wfbench.sweep.scripts import find_cassettes, load_scripts, uncovered
from pytest_wfbench.sweep.snapshot import snapshot
from pytest_wfbench.sweep.subjects import find_runtimes, key_problems, read_subjects
from pytest_wfbench.usage.prices import BadPrices, PriceTable
from pytest_wfbench.workspace.skills import missing_skills
from pytest_wfbench.workspace.startstate import StartState
from pytest_wfbench.workspace.template import Template


def prepare(files: Sequence[Path], options: Options, directory: Path, *, probe: bool = True) -> Plan:
    """Read and prove everything: case files, arms, subjects, overlay, repositories, skills, cassettes, prices, agents.

    Args:
        files: case files, absolute.
        directory: where pytest was started; paths typed as options are relative to it.
        probe: whether the agents must be found on this machine.

    Raises:
        InvalidCases: with every fault of all of it.
    """
    loaded = load_cases(files)
    problems = list(loaded.problems)
    overlay: tuple[Captured, ...] = ()
    if options.candidate_overlay:
        overlay, found = read_overlay(directory / Path(options.candidate_overlay).expanduser())
        problems.extend(found)
    arms, faults = _arms(files, options, directory, overlay)
    problems.extend(faults)
    subjects, faults = read_subjects(files, options)
    problems.extend(faults)
    cassettes, faults = find_cassettes(files, directory, subjects)
    problems.extend(faults)
    runtimes, faults = find_runtimes(subjects, directory, probe)
    problems.extend(faults)
    templates, faults = snapshot(loaded.tasks)
    problems.extend(faults)
    for task in loaded.tasks:
        if task.task.id in templates:
            problems.extend(_skill_problems(task, templates[task.task.id], arms[task.file].chosen))
    problems.extend(key_problems(subjects))
    problems.extend(_price_problems(options, directory))
    problems.extend(_proof_problems(loaded.tasks))
    problems.extend(_unsupported(loaded.tasks, options))
    scripts, faults = load_scripts(cassettes)
    problems.extend(faults)
    problems.extend(_same_as_base(overlay, templates))
    if problems:
        raise InvalidCases(problems)
    plan = Plan(
        directory=directory,
        options=options,
        tasks=loaded.tasks,
        arms=arms,
        subjects=subjects,
        templates=templates,
        runtimes=runtimes,
        cassettes=cassettes,
        overlay=overlay,
    )
    if without_script := list(uncovered(scripts, plan.runnable())):
        raise InvalidCases(without_script)
    return plan


def _same_as_base(overlay: tuple[Captured, ...], templates: Mapping[str, Template]) -> Iterator[Problem]:
    """An overlay that changes nothing would only measure noise."""
    trees = {template.path for template in templates.values()}
    if overlay and trees and all(base_of(entry, tree) == entry.data for entry in overlay for tree in trees):
        message = "the overlay is identical to the skills it would replace"
        yield Problem("--wfbench-candidate-overlay", 0, "", "", message, "Change the candidate, or leave its arms out")


def _arms(
    files: Sequence[Path], options: Options, directory: Path, overlay: tuple[Captured, ...]
) -> tuple[dict[Path, FileArms], list[Problem]]:
    named = directory / Path(options.arms_file).expanduser() if options.arms_file else None
    by_file = {file: arms_file_for(file, named) for file in files}
    read: dict[Path, LoadedArms] = {path: load_arms(path) for path in dict.fromkeys(by_file.values())}
    problems = [problem for loaded in read.values() for problem in loaded.problems]
    if not problems:
        problems.extend(unknown_arms(list(read.values()), options.arms))
    chosen = {path: chosen_arms(loaded, options.arms) for path, loaded in read.items()}
    for path, loaded in read.items():
        problems.extend(set_problems(loaded, chosen[path], overlay))
    result = {f: FileArms(file=p, chosen=chosen[p], declared=read[p].arms) for f, p in by_file.items()}
    return result, problems


def _skill_problems(loaded: LoadedTask, template: Template, arms: Sequence[Arm]) -> Iterator[Problem]:
    start = StartState(template, None, template.snapshot_commit, template.digest)
    for arm in arms:
        if loaded.task.kind not in arm.kinds:
            continue
        for skill in missing_skills(start, arm.skills):
            message = f"arm {arm.name!r} needs the skill {skill!r}, which the repository lacks"
            yield loaded.problem("repo", message, f"Add .claude/skills/{skill}/SKILL.md or leave the arm out")


def _price_problems(options: Options, directory: Path) -> Iterator[Problem]:
    if options.prices:
        try:
            PriceTable.load(directory / Path(options.prices).expanduser())
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


def _unsupported(tasks: Sequence[LoadedTask], options: Options) -> Iterator[Problem]:
    """What reads well but would be passed over in silence is refused."""
    if options.sandbox == "host":
        yield Problem("--wfbench-sandbox", 0, "", "", "cells cannot be run on the host yet", "Leave the option out")
    for loaded in tasks:
        task = loaded.task
        if task.kind != "implementation":
            yield loaded.problem("kind", f"{task.kind} tasks cannot be run yet", "Leave the task out")
        if task.dependencies:
            yield loaded.problem("dependencies", "dependencies cannot be mounted yet", "Leave the key out")
        if task.mcp:
            yield loaded.problem("mcp", "MCP servers cannot be started yet", "Leave the key out")
