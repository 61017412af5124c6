"""The directories that tasks have mounted beside their workspaces, looked at once before anything is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_wfbench.digests import digest_value
from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.sandbox.identity import cache_directory, choose_identity
from pytest_wfbench.sandbox.spec import Bind
from pytest_wfbench.sweep.places import hidden_places, touching
from pytest_wfbench.workspace.beside import UnfitDirectory, directory_digest
from pytest_wfbench.workspace.template import Template

REMEDY = "Name a directory that holds only what agents may see"


def with_dependencies(
    tasks: Sequence[LoadedTask], templates: dict[str, Template], apart: Iterable[Path]
) -> tuple[dict[str, Template], list[Problem]]:
    """Return the templates with what their tasks mount beside them, and what is wrong with it.

    ``apart`` are places that no sandbox may show: a dependency must not hold one or lie in one, nor a case file, an
    oracle, the history or a private path of a repository, or what the harness keeps of other cells.
    """
    hidden = {*hidden_places(tasks, apart), cache_directory(choose_identity())}
    for loaded in tasks:
        hidden |= set(_hidden_of(loaded))
    known: dict[Path, str] = {}
    problems: list[Problem] = []
    found = dict(templates)
    for loaded in tasks:
        if loaded.task.dependencies and loaded.task.id in templates:
            template, faults = _beside(loaded, templates[loaded.task.id], frozenset(hidden), known)
            found[loaded.task.id] = template
            problems += faults
    return found, problems


def _hidden_of(loaded: LoadedTask) -> Iterator[Path]:
    """Yield what a task's snapshot leaves out of its repository."""
    repository = loaded.repository or loaded.file.parent
    return (place for name in (".git", *loaded.task.private) if (place := repository / name).exists())


def _beside(
    loaded: LoadedTask, template: Template, hidden: frozenset[Path], known: dict[Path, str]
) -> tuple[Template, list[Problem]]:
    mounts: list[Bind] = []
    digests: list[list[str]] = []
    problems: list[Problem] = []
    for index, entry in enumerate(loaded.task.dependencies):
        source = user_path(entry.source, loaded.file.parent)
        key = f"dependencies.{index}.source"
        if (told := touching(source, hidden)) is not None:
            problems.append(loaded.problem(key, f"{entry.source} {told}, which is to be hidden", REMEDY))
            continue
        try:
            known[source] = known.get(source) or directory_digest(source)
        except UnfitDirectory as error:
            problems.append(loaded.problem(key, str(error), REMEDY))
            continue
        mounts.append(Bind(source, entry.target))
        digests.append([entry.target, known[source]])
    return replace(template, beside=tuple(mounts), beside_digest=digest_value(sorted(digests))), problems
