"""The plan of a sweep, as one value: what is to be run, already proven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from pytest_wfbench.agents.base import Runtime
from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.digests import digest_tree
from pytest_wfbench.files import read_untrusted
from pytest_wfbench.gateway.api import Route
from pytest_wfbench.matrix.arms import SKILL_ROOT, Arm
from pytest_wfbench.matrix.bindings import TaskBinding, bind_task, overlay_digest
from pytest_wfbench.matrix.cells import Cell, expand
from pytest_wfbench.matrix.hidden import Captured
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.options import Options
from pytest_wfbench.sandbox.spec import SandboxName
from pytest_wfbench.sweep.judge import JudgeRoute
from pytest_wfbench.sweep.wishes import agent_options, undeniable
from pytest_wfbench.workspace.external import ExternalPlugin
from pytest_wfbench.workspace.overlay import SKILL_ROOTS
from pytest_wfbench.workspace.template import Template

SCRIPT_LIMIT = 16 << 20


class Skip(NamedTuple):
    """Why a selected cell is not run: one of the row's kinds of ``skipped``, and a sentence."""

    kind: Literal["expensive", "unsupported"]
    reason: str


class FileArms(BaseModel):
    """The arms that one case file's tasks are paired with, and all that its arms file declares, mirrors included."""

    model_config = ConfigDict(frozen=True)

    file: Path
    chosen: tuple[Arm, ...]
    declared: tuple[Arm, ...]
    mirrors: tuple[str, ...] = ()


class Plan(BaseModel):
    """What is to be run, whole: it travels to workers as JSON, and nothing is looked up twice.

    ``directory`` is where pytest was started, ``templates`` the snapshot of each task by id, ``runtimes`` the
    agents found, ``cassettes`` the script directory of each replayed model, ``overlay`` the candidate's files,
    ``plugin`` the external plugin of the arms that use one, ``judge`` who judges answers, if anybody is named.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    directory: Path
    options: Options
    tasks: tuple[LoadedTask, ...]
    arms: dict[Path, FileArms]
    subjects: tuple[Subject, ...]
    templates: dict[str, Template]
    runtimes: dict[str, Runtime]
    cassettes: dict[str, Path]
    overlay: tuple[Captured, ...]
    plugin: ExternalPlugin | None = None
    judge: JudgeRoute | None = None

    def tasks_of(self, file: Path) -> Iterator[LoadedTask]:
        """Yield the tasks of one case file."""
        return (loaded for loaded in self.tasks if loaded.file == file)

    @cached_property
    def _by_name(self) -> Mapping[tuple[Path, str], tuple[Cell, ...]]:
        cells: dict[tuple[Path, str], list[Cell]] = {}
        for loaded in self.tasks:
            arms = self.arms[loaded.file].chosen
            for cell in expand([loaded.task], arms, self.subjects, self.options.runs):
                cells.setdefault((loaded.file, cell.name), []).append(cell)
        return {key: tuple(value) for key, value in cells.items()}

    def cells_of(self, file: Path, name: str) -> tuple[Cell, ...]:
        """Return the cells of a task in one wording, by the name of its function."""
        return self._by_name.get((file, name), ())

    def node_id(self, cell: Cell, root: Path) -> str:
        """Return a cell's node id; ``root`` is pytest's root directory."""
        file = self.loaded(cell.task.id).file
        shown = file.relative_to(root) if file.is_relative_to(root) else file
        return f"{shown.as_posix()}::{cell.name}[{cell.parameter}]"

    def has_model(self, subject: Subject) -> bool:
        """Whether a subject's cells call the gateway."""
        return get_agent(subject.agent).uses_model

    def cells(self) -> Iterator[Cell]:
        """Yield every cell, selected or not."""
        for cells in self._by_name.values():
            yield from cells

    @cached_property
    def _by_id(self) -> Mapping[str, LoadedTask]:
        return {loaded.task.id: loaded for loaded in self.tasks}

    def loaded(self, task: str) -> LoadedTask:
        """Return a task by its id."""
        return self._by_id[task]

    @cached_property
    def _bindings(self) -> Mapping[tuple[str, int], TaskBinding]:
        return {
            (loaded.task.id, variation): bind_task(loaded, variation)
            for loaded in self.tasks
            for variation in range(len(loaded.task.variations) + 1)
        }

    def binding(self, task: str, variation: int) -> TaskBinding:
        """Return the digests of a task in one wording."""
        return self._bindings[task, variation]

    def skill_digest(self, cell: Cell) -> str | None:
        """Return the digest of an arm's skills as its sessions find them, the overlay included; none without skills."""
        if plugin := self.plugin_of(cell.arm):
            return plugin.digest if cell.arm.skills else None
        template = self.templates.get(cell.task.id)
        if template is None or not cell.arm.skills:
            return None
        return self._skill_digests(template.path, cell.arm)

    def _skill_digests(self, tree: Path, arm: Arm) -> str:
        key = (tree, arm.name)
        if key not in self._digests:
            files = dict(_skill_files(tree, arm.skills))
            laid = {name: data for name, data in self.overlay_of(arm).items() if name.partition("/")[0] in arm.skills}
            self._digests[key] = digest_tree((files | laid).items())
        return self._digests[key]

    @cached_property
    def _digests(self) -> dict[tuple[Path, str], str]:
        return {}

    @cached_property
    def overlay_digest(self) -> str | None:
        """Digest of the candidate's files, or none."""
        return overlay_digest({entry.name: entry.data for entry in self.overlay})

    def runnable(self) -> Iterator[Cell]:
        """Yield the cells that would be run if all were selected."""
        return (cell for cell in self.cells() if self.skip(cell) is None)

    def overlay_of(self, arm: Arm) -> dict[str, bytes]:
        """Return the files an arm has laid over its skills: ``<skill>/…`` to bytes."""
        return {entry.name: entry.data for entry in self.overlay} if arm.overlay else {}

    def plugin_of(self, arm: Arm) -> ExternalPlugin | None:
        """Return the plugin that an arm's sessions load, or none."""
        return self.plugin if arm.plugin else None

    def skill_name(self, arm: Arm, skill: str) -> str:
        """Return what an arm's agent calls a skill."""
        plugin = self.plugin_of(arm)
        return plugin.skill_name(skill) if plugin else skill

    def skip(self, cell: Cell) -> Skip | None:
        """Return why a cell is not run although it was selected, or none."""
        if cell.task.expensive and not self.options.include_expensive:
            return Skip("expensive", "run it with --wfbench-include-expensive")
        runtime = self.runtimes.get(str(cell.subject))
        if cell.arm.plugin and runtime and not runtime.plugins:
            return Skip("unsupported", f"{cell.subject} has no plugins, which {cell.arm.name} needs")
        if cell.arm.plugin and self.options.sandbox == "host" and get_agent(cell.subject.agent).skills == "file":
            return Skip("unsupported", f"{cell.subject} finds no plugin's skill files where there is no sandbox")
        if cell.arm.skills and runtime and not runtime.reports_events:
            return Skip(
                "unsupported", f"{cell.subject} reports no events, so {cell.arm.name} cannot be proven to use skills"
            )
        if cell.task.kind == "question" and runtime and not runtime.reports_events:
            return Skip("unsupported", f"{cell.subject} reports no events, so what it answers cannot be told")
        if len(cell.task.steps) > 1 and not get_agent(cell.subject.agent).traits.converses:
            return Skip("unsupported", f"{cell.subject} has no conversations, which the steps of {cell.task.id} need")
        if kept := undeniable(cell.subject.agent, cell.arm):
            return Skip("unsupported", f"{cell.subject} cannot go without {', '.join(kept)}, as {cell.arm.name} asks")
        if cell.mcp and runtime and not runtime.mcp:
            return Skip("unsupported", f"{cell.subject} has no MCP, which the servers of {cell.task.id} need")
        return None

    def agent_options(self, agent: str) -> dict[str, str]:
        """Return what was set for an agent, by name."""
        return agent_options(self.options.agent_option, agent)

    def bindings(self) -> Iterator[tuple[str, int, TaskBinding]]:
        """Yield (task, variation, digests) of every task in every wording."""
        return ((task, variation, binding) for (task, variation), binding in self._bindings.items())

    @cached_property
    def needs_gateway(self) -> bool:
        """Whether any subject has a model, or answers are judged."""
        return self.judge is not None or any(self.has_model(subject) for subject in self.subjects)

    def unjudged(self, cells: Iterable[Cell]) -> str | None:
        """Return what is to be said where cells are to be run whose answers nobody would judge, or none."""
        lost = dict.fromkeys(cell.task.id for cell in cells if cell.task.rubric and self.skip(cell) is None)
        if self.judge is not None or not lost:
            return None
        named = ", ".join(list(lost)[:5]) + (", …" if len(lost) > 5 else "")
        return (
            f"--wfbench-judge-model is missing, and the rubric of {named} needs a judge. "
            "Name one, for example litellm/<model>, or select other tasks"
        )

    def uses_gateway(self, cell: Cell) -> bool:
        """Whether a cell's agent has a model, or its answer is judged."""
        return self.has_model(cell.subject) or (self.judge is not None and cell.task.rubric is not None)

    @property
    def routes(self) -> tuple[Route, ...]:
        """Where each subject's model goes."""
        models = dict.fromkeys(subject.model for subject in self.subjects if self.has_model(subject))
        if self.judge is not None:
            models[self.judge.model] = None
        return tuple(Route(model=model, cassettes=self.cassettes.get(model)) for model in models)

    @cached_property
    def cassette_digests(self) -> Mapping[str, str]:
        """Digest of every replayed model's scripts."""
        return {model: digest_tree(_scripts(path)) for model, path in self.cassettes.items()}

    @cached_property
    def closed_directories(self) -> frozenset[Path]:
        """Directories in which nothing is collected as a test: task repositories and oracle roots."""
        return closed_directories(self.tasks)


def sandbox_name(options: Options) -> SandboxName:
    """Return the sandbox that was asked for."""
    return "host" if options.sandbox == "host" else "bwrap"


def _scripts(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(directory.glob("*.yaml")):
        yield path.name, read_untrusted(directory, path.name, SCRIPT_LIMIT)


def _skill_files(tree: Path, skills: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Yield what agents may find of some skills: those of ``SKILL_ROOT`` by the names that an overlay has for them."""
    for place in SKILL_ROOTS:
        root, prefix = tree / place, "" if place == SKILL_ROOT else f"{place}/"
        for skill in skills:
            for path in sorted((root / skill).rglob("*")):
                if path.is_file() and not path.is_symlink():
                    name = path.relative_to(root).as_posix()
                    yield prefix + name, read_untrusted(root, name, SCRIPT_LIMIT)


def closed_directories(tasks: Sequence[LoadedTask]) -> frozenset[Path]:
    """Return the task repositories and oracle roots, but for one that holds its own task's case file."""
    named = ((path, loaded.file) for loaded in tasks for path in (loaded.repository, loaded.oracle_root))
    return frozenset(path for path, file in named if path and path not in file.parents)
