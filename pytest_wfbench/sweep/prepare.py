"""Everything that is asked for, proven before anything is spent; every fault of all of it at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.bindings import proof_digest
from pytest_wfbench.matrix.defaults import with_limits
from pytest_wfbench.matrix.load import LoadedTask, load_cases
from pytest_wfbench.matrix.problems import InvalidCases, Problem
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.arms import ALL_KINDS, kinds_of, pair_arms, skill_problems
from pytest_wfbench.sweep.budgets import terms_of, unpriced
from pytest_wfbench.sweep.candidate import base_problems, candidate_files, laid_over, read_candidate
from pytest_wfbench.sweep.compared import comparison_problems
from pytest_wfbench.sweep.dependencies import with_dependencies
from pytest_wfbench.sweep.external import find_plugin, kept_plugin
from pytest_wfbench.sweep.judge import read_judge
from pytest_wfbench.sweep.places import exposed, unwritable
from pytest_wfbench.sweep.plan import Plan, closed_directories, sandbox_name
from pytest_wfbench.sweep.recording import record_directory, record_problems
from pytest_wfbench.sweep.reviewed import review_problems
from pytest_wfbench.sweep.scripts import find_cassettes, load_scripts, uncovered, unjudgeable
from pytest_wfbench.sweep.secrets import written_keys
from pytest_wfbench.sweep.snapshot import MachineUnfit, snapshot
from pytest_wfbench.sweep.subjects import find_runtimes, key_problems, moving_problems, read_subjects
from pytest_wfbench.sweep.wishes import version_problems, wish_problems
from pytest_wfbench.usage.prices import BadPrices, PriceTable

Value = TypeVar("Value")


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
    kinds = {file: (kinds_of(tasks, file) if found.none else None) or ALL_KINDS for file in files}
    overlay = found.take(read_candidate(options, directory))
    external = found.take(find_plugin(options, directory))
    arms = found.take(pair_arms(kinds, options, directory, overlay, external))
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
    found.add(skill_problems(tasks, templates, arms))
    found.add(key_problems(subjects))
    written = [*files, *(entry.file for entry in arms.values()), *candidate_files(options, directory, overlay)]
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
    found.add(base_problems(overlay, laid_over(tasks, arms, templates)))
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
