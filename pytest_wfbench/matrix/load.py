"""Case files read into frozen tasks, with every fault of every file at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_wfbench.files import UnsafeFile, read_untrusted, user_path
from pytest_wfbench.matrix.faults import explained, problem_of_yaml, unknown_key, yaml_problems
from pytest_wfbench.matrix.fields import BY_HAND
from pytest_wfbench.matrix.hidden import HiddenFault, HiddenFiles, faults_of, find_oracle_root, read_hidden
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.task import MAX_FILES, Task
from pytest_wfbench.matrix.yamldoc import BadYaml, Document, Path_, read_yaml

SUFFIX = ".cases.yaml"
CASE_FILE_LIMIT = 4 << 20
FILE_KEYS = ("kind", "defaults", "tasks", "oracle_root")


class LoadedTask(BaseModel):
    """A task, where it was read, and its hidden files as captured then. ``line`` counts from 1."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    task: Task
    file: Path
    line: int
    oracle_root: Path | None
    hidden: HiddenFiles

    def problem(self, key: str, message: str, remedy: str) -> Problem:
        """Return a fault of this task."""
        return Problem(shown_path(self.file), self.line, self.task.id, key, message, remedy)

    @property
    def repository(self) -> Path | None:
        """The task's repository, absolute, or none for a task without one."""
        return user_path(self.task.repo, self.file.parent) if self.task.repo else None


class Loaded(BaseModel):
    """What came of reading case files: tasks in the order of files and lines, and all problems."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    tasks: tuple[LoadedTask, ...]
    problems: tuple[Problem, ...]


def load_cases(paths: Iterable[Path]) -> Loaded:
    """Read case files; nothing is run and nothing outside them and their oracle root is read."""
    tasks: list[LoadedTask] = []
    problems: list[Problem] = []
    entries: list[_Entry] = []
    for path in paths:
        for item in _read_file(path):
            if isinstance(item, LoadedTask):
                tasks.append(item)
            elif isinstance(item, Problem):
                problems.append(item)
            else:
                entries.append(item)
    problems.extend(_repeated_ids(entries))
    return Loaded(tasks=tuple(tasks), problems=tuple(problems))


@dataclass(frozen=True)
class _File:
    """A case file whose YAML reads. ``root`` is none where it is at fault, and no hidden file is looked for."""

    path: Path
    document: Document
    root: Path | None

    @property
    def shown(self) -> str:
        return shown_path(self.path)

    def section(self, key: str) -> Any:
        """Return what stands under a key of the file's top."""
        return self.document.value.get(key) if isinstance(self.document.value, dict) else None


@dataclass(frozen=True)
class _Entry:
    """One entry of ``tasks``, whatever it holds."""

    file: _File
    index: int
    written: dict[str, Any]

    @property
    def name(self) -> str:
        """The task's id, or its place where it has none."""
        return self.id if self.id is not None else f"#{self.index + 1}"

    @property
    def id(self) -> str | None:
        given = self.written.get("id")
        return given if isinstance(given, str) else None

    def place(self, path: Path_) -> tuple[int, str, str]:
        """Return line, task and key of a place in the task; a default stands elsewhere, and belongs to no task."""
        key = ".".join(str(part) for part in path)
        document = self.file.document
        if path and path[0] not in self.written:
            if path[0] == "kind" and ("kind",) in document.lines:
                return document.line(("kind",)), "", key
            if ("defaults", path[0]) in document.lines:
                return document.line(("defaults", *path)), "", f"defaults.{key}"
        return document.line(("tasks", self.index, *path)), self.name, key

    def problem(self, path: Path_, message: str, remedy: str) -> Problem:
        line, task, key = self.place(path)
        return Problem(self.file.shown, line, task, key, message, remedy)

    def whole(self) -> dict[str, Any]:
        """Return the task with the file's defaults."""
        defaults, kind = self.file.section("defaults"), self.file.section("kind")
        merged = dict(defaults) if isinstance(defaults, dict) else {}
        return merged | ({} if kind is None else {"kind": kind}) | self.written


def _repeated_ids(entries: list[_Entry]) -> Iterator[Problem]:
    first: dict[str, _Entry] = {}
    for entry in entries:
        if entry.id is None:
            continue
        other = first.setdefault(entry.id, entry)
        if other is not entry:
            place = f"{other.file.shown}:{other.place(('id',))[0]}"
            yield entry.problem(("id",), f"id {entry.id!r} is used twice (first at {place})", "Rename one of them")


def _read_file(path: Path) -> Iterator[_Entry | LoadedTask | Problem]:
    shown = shown_path(path)
    try:
        document = read_yaml(read_untrusted(path.parent, path.name, CASE_FILE_LIMIT))
    except BadYaml as error:
        yield problem_of_yaml(error, shown)
    except UnsafeFile as error:
        yield Problem(
            shown,
            0,
            "",
            "",
            str(error).removeprefix(f"{path.name}: "),
            "A case file is a regular file of at most 4 MiB",
        )
    except OSError as error:
        yield Problem(shown, 0, "", "", f"cannot be read: {error.strerror}", "Check the path and its permissions")
    else:
        file = _with_root(_File(path, document, None))
        yield from _yaml_problems(file)
        yield from _file_problems(file)
        yield from _tasks(file)


def _with_root(file: _File) -> _File:
    named = file.section("oracle_root")
    root = find_oracle_root(file.path, named) if named is None or (isinstance(named, str) and named.strip()) else None
    return replace(file, root=root if root is None or named is None or root.is_dir() else None)


def _yaml_problems(file: _File) -> Iterator[Problem]:
    """Yield the faults of values, each with the task it stands in."""
    for fault, problem in zip(file.document.faults, yaml_problems(file.document, file.shown), strict=True):
        entries = file.section("tasks")
        if fault.path[:1] == ("tasks",) and len(fault.path) > 1 and isinstance(entries, list):
            index = int(fault.path[1])
            entry = _Entry(file, index, entries[index] if isinstance(entries[index], dict) else {})
            key = ".".join(str(part) for part in fault.path[2:])
            yield replace(problem, task=entry.name, key=key)
        else:
            yield problem


def _file_problems(file: _File) -> Iterator[Problem]:
    value, document = file.document.value, file.document
    if not isinstance(value, dict):
        yield Problem(file.shown, 1, "", "", "not a case file", "Write `tasks:` with a list of tasks")
        return
    for key in sorted(value.keys() - set(FILE_KEYS)):
        yield Problem(file.shown, document.line((key,)), "", key, *unknown_key(key, FILE_KEYS))
    for key, message, remedy in _section_faults(file):
        yield Problem(file.shown, document.line((key,)), "", key, message, remedy)


def _section_faults(file: _File) -> Iterator[tuple[str, str, str]]:
    value = file.document.value
    if not isinstance(value.get("tasks"), list) or not value["tasks"]:
        yield "tasks", "no tasks", "Write `tasks:` with a list of tasks"
    defaults = value.get("defaults", {})
    if not isinstance(defaults, dict):
        yield "defaults", "must be a mapping", "Write `key: value` pairs below it"
    elif "id" in defaults:
        yield "defaults", "id cannot be a default", "Give each task its own"
    elif "kind" in defaults and "kind" in value:
        yield "kind", "kind is set at the file's top and under defaults", "Keep one of them"
    if "oracle_root" in value and file.root is None:
        yield "oracle_root", "not a directory", "Name a directory relative to the case file"


def _tasks(file: _File) -> Iterator[_Entry | LoadedTask | Problem]:
    entries = file.section("tasks")
    for index, written in enumerate(entries if isinstance(entries, list) else ()):
        entry = _Entry(file, index, written if isinstance(written, dict) else {})
        if isinstance(written, dict):
            yield entry
            yield from _one_task(entry)
        else:
            yield entry.problem((), "a task must be a mapping", "Write `- id: …`")


def _one_task(entry: _Entry) -> Iterator[LoadedTask | Problem]:
    file, whole = entry.file, entry.whole()
    try:
        task = Task.model_validate(whole, context=BY_HAND)
    except ValidationError as error:
        found = list(explained(error, Task))
        yield from (entry.problem(where, message, remedy) for where, message, remedy in found)
        places = {where for where, _, _ in found}
        named = [(where, name) for where, name in _named_files(whole) if where not in places]
        yield from _hidden_problems(entry, faults_of(named, file.root) if file.root else [])
        return
    hidden, faults = read_hidden(task, file.root) if file.root else (HiddenFiles(), [])
    yield from _hidden_problems(entry, faults)
    line = file.document.line(("tasks", entry.index))
    yield LoadedTask(task=task, file=file.path, line=line, oracle_root=file.root, hidden=hidden)


def _hidden_problems(entry: _Entry, faults: list[HiddenFault]) -> Iterator[Problem]:
    for fault in faults:
        yield entry.problem(fault.path, fault.message, fault.remedy)


def _named_files(whole: dict[str, Any]) -> Iterator[tuple[Path_, str]]:
    """Yield where hidden files are named in a task that is at fault elsewhere, and their names."""
    oracle, bad = whole.get("oracle"), whole.get("reference_bad")
    files = oracle.get("files") if isinstance(oracle, dict) else None
    sources = [entry.get("source") if isinstance(entry, dict) else None for entry in _list(files)]
    named = [
        *((("oracle", "files", index, "source"), source) for index, source in enumerate(sources[:MAX_FILES])),
        *(((name,), whole.get(name)) for name in ("reference", "patch", "labels")),
        *((("reference_bad", index), name) for index, name in enumerate(_list(bad))),
    ]
    yield from ((where, name) for where, name in named if isinstance(name, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
