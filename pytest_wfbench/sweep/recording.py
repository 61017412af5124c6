"""Where a sweep is recorded: looked at before anything is started, and made whole when it has ended."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.files import user_path
from pytest_wfbench.gateway.tape import Tape, Voice, file_name
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.options import Options
from pytest_wfbench.scoring.judge import SESSION
from pytest_wfbench.sweep.places import closed
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.sweep.scripts import labels_of

OPTION = "--wfbench-record"


def record_directory(options: Options, directory: Path) -> Path | None:
    """Return where cassettes go, or none; ``directory`` is where pytest was started."""
    return user_path(options.record, directory) if options.record else None


def record_problems(
    options: Options, directory: Path, subjects: Sequence[Subject], repositories: Iterable[Path]
) -> Iterator[Problem]:
    """Yield what is wrong with the directory: cassettes are never mixed with others, nor written over.

    What lies in a task's repository is shown to the agents of later sweeps, and cassettes are the answers.
    """
    target = record_directory(options, directory)
    if target is None:
        return
    for repository in sorted(set(repositories)):
        if target.resolve().is_relative_to(repository.resolve()):
            message = f"{shown_path(target)} lies in the repository {shown_path(repository)}, which agents see"
            yield Problem(OPTION, 0, "", "", message, "Name a directory outside of every task's repository")
    if problem := closed(target, OPTION):
        yield problem
    elif os.path.lexists(target) and (target.is_symlink() or any(target.iterdir())):
        message = f"{shown_path(target)} is not empty, and recordings are never mixed"
        yield Problem(OPTION, 0, "", "", message, "Name a new directory, or remove what is in it")
    models = defaultdict(set)
    for subject in subjects:
        if get_agent(subject.agent).uses_model:
            models[subject.agent].add(subject.model)
    for agent, named in models.items():
        if len(named) > 1:
            message = f"{agent} has several models, and a cassette does not say whose it is"
            yield Problem(OPTION, 0, "", "", message, "Record one model of an agent at a time")


def fill_gaps(plan: Plan, done: Collection[str]) -> None:
    """Let every session of a cell that has a row have a cassette: one that was never reached says so.

    Raises OSError.
    """
    directory = record_directory(plan.options, plan.directory)
    if directory is None or not directory.is_dir():
        return
    for cell in plan.runnable():
        if cell.id in done:
            model = cell.subject.model
            for session in cell.arm.sessions if plan.has_model(cell.subject) else ():
                _fill(directory / file_name(cell.id, session.name), cell, session.name, model)
            # Where a check failed no judge was asked.
            if plan.judge is not None and cell.task.rubric is not None:
                _fill(directory / file_name(cell.id, SESSION), cell, SESSION, plan.judge.model)


def _fill(path: Path, cell: Cell, session: str, model: str) -> None:
    if not path.exists():
        name = model.rpartition("/")[2]
        Tape(path, labels_of(cell, session), Voice("openai", name), lambda value: value).begin()
