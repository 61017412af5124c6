"""Everything that is asked for, proven before anything is spent; every fault of all of it at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_wfbench.agents.base import AgentUnavailable, Runtime
from pytest_wfbench.agents.registry import UnknownAgent, get_agent
from pytest_wfbench.gateway.cassette import CassetteError, load_cassettes
from pytest_wfbench.gateway.providers import KeyMissing, ProviderUnknown, provider_of
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.bindings import proof_digest
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load import LoadedTask, load_cases
from pytest_wfbench.matrix.load_arms import LoadedArms, arms_file_for, load_arms
from pytest_wfbench.matrix.overlay import read_overlay
from pytest_wfbench.matrix.problems import InvalidCases, Problem
from pytest_wfbench.matrix.select import chosen_arms, set_problems, unknown_arms
from pytest_wfbench.matrix.subject import BadSubject, Subject, parse_subject
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.plan import FileArms, Plan
from pytest_wfbench.sweep.snapshot import snapshot
from pytest_wfbench.usage.prices import BadPrices, PriceTable
from pytest_wfbench.workspace.skills import missing_skills
from pytest_wfbench.workspace.startstate import StartState
from pytest_wfbench.workspace.template import Template

CASSETTES = "cassettes"
DEFAULT_SUBJECT = "mini:replay/demo"


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
    subjects, faults = _subjects(files, options)
    problems.extend(faults)
    cassettes, faults = _cassettes(files, directory, subjects)
    problems.extend(faults)
    runtimes, faults = _runtimes(subjects, directory, probe)
    problems.extend(faults)
    templates, faults = snapshot(loaded.tasks)
    problems.extend(faults)
    for task in loaded.tasks:
        if task.task.id in templates:
            problems.extend(_skill_problems(task, templates[task.task.id], arms[task.file].chosen))
    problems.extend(_key_problems(subjects))
    problems.extend(_price_problems(options, directory))
    problems.extend(_proof_problems(loaded.tasks))
    if problems:
        raise InvalidCases(problems)
    return Plan(
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


def _subjects(files: Sequence[Path], options: Options) -> tuple[tuple[Subject, ...], list[Problem]]:
    given = options.subject
    if not given and any((file.parent / CASSETTES / "demo").is_dir() for file in files):
        given = (DEFAULT_SUBJECT,)
    if not given:
        remedy = "Name one, for example --wfbench-subject claude-code:anthropic/claude-sonnet-4-5"
        return (), [Problem("--wfbench-subject", 0, "", "", "no subject", remedy)]
    subjects: list[Subject] = []
    problems: list[Problem] = []
    for text in given:
        try:
            subject = parse_subject(text)
            get_agent(subject.agent)
        except (BadSubject, UnknownAgent) as error:
            problems.append(Problem("--wfbench-subject", 0, "", "", str(error), "Mend the option"))
            continue
        if subject in subjects:
            problems.append(Problem("--wfbench-subject", 0, "", "", f"{subject} is named twice", "Name it once"))
        subjects.append(subject)
    return tuple(subjects), problems


def _cassettes(
    files: Sequence[Path], directory: Path, subjects: Sequence[Subject]
) -> tuple[dict[str, Path], list[Problem]]:
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for subject in subjects:
        if not subject.cassette or not get_agent(subject.agent).uses_model:
            continue
        places = [file.parent / CASSETTES / subject.cassette for file in files] + [directory / subject.cassette]
        place = next((path for path in places if path.is_dir()), None)
        if place is None:
            message = f"no cassette directory {CASSETTES}/{subject.cassette} beside the case files"
            problems.append(Problem(str(subject), 0, "", "", message, "Record one, or name another subject"))
            continue
        try:
            load_cassettes(place)
        except CassetteError as error:
            problems.append(Problem(str(place), 0, "", "", str(error), "Mend the cassette"))
        found[subject.model] = place
    return found, problems


def _runtimes(subjects: Sequence[Subject], directory: Path, probe: bool) -> tuple[dict[str, Runtime], list[Problem]]:
    found: dict[str, Runtime] = {}
    problems: list[Problem] = []
    for subject in subjects if probe else ():
        try:
            found[str(subject)] = get_agent(subject.agent).find(subject.model, directory)
        except AgentUnavailable as error:
            message, _, remedy = str(error).partition(": ")
            problems.append(Problem(str(subject), 0, "", "", message, remedy or "See docs/agents.md"))
    return found, problems


def _skill_problems(loaded: LoadedTask, template: Template, arms: Sequence[Arm]) -> Iterator[Problem]:
    start = StartState(template, None, template.snapshot_commit, template.digest)
    for arm in arms:
        if loaded.task.kind not in arm.kinds:
            continue
        for skill in missing_skills(start, arm.skills):
            message = f"arm {arm.name!r} needs the skill {skill!r}, which the repository lacks"
            yield loaded.problem("repo", message, f"Add .claude/skills/{skill}/SKILL.md or leave the arm out")


def _key_problems(subjects: Sequence[Subject]) -> Iterator[Problem]:
    """A key that is missing is said before anything is started."""
    for subject in subjects:
        if subject.cassette or not get_agent(subject.agent).uses_model:
            continue
        try:
            provider_of(subject.model, os.environ)
        except (KeyMissing, ProviderUnknown) as error:
            message, _, remedy = str(error).partition(": ")
            yield Problem(str(subject), 0, "", "", message, remedy[0].upper() + remedy[1:])


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
