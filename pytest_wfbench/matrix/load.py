"""Case files read into frozen tasks, with every fault of every file at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.faults import problem_of_yaml, problems_of, repeated_keys
from pytest_wfbench.matrix.hidden import HiddenFiles, find_oracle_root, read_hidden
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.task import Task
from pytest_wfbench.matrix.yamldoc import BadYaml, Document, read_yaml

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
        return (self.file.parent / Path(self.task.repo).expanduser()).absolute() if self.task.repo else None


class Loaded(BaseModel):
    """What came of reading case files: tasks in the order of files and lines, and all problems."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    tasks: tuple[LoadedTask, ...]
    problems: tuple[Problem, ...]


def load_cases(paths: Iterable[Path]) -> Loaded:
    """Read case files; nothing is run and nothing outside them and their oracle root is read."""
    tasks: list[LoadedTask] = []
    problems: list[Problem] = []
    for path in paths:
        for item in _read_file(path):
            (tasks if isinstance(item, LoadedTask) else problems).append(item)  # type: ignore[arg-type]
    problems.extend(_repeated_ids(tasks))
    return Loaded(tasks=tuple(tasks), problems=tuple(problems))


def _repeated_ids(tasks: list[LoadedTask]) -> Iterator[Problem]:
    first: dict[str, LoadedTask] = {}
    for loaded in tasks:
        other = first.setdefault(loaded.task.id, loaded)
        if other is not loaded:
            place = f"{shown_path(other.file)}:{other.line}"
            yield loaded.problem("id", f"id {loaded.task.id!r} is used twice (first at {place})", "Rename one of them")


def _read_file(path: Path) -> Iterator[LoadedTask | Problem]:
    shown = shown_path(path)
    try:
        document = read_yaml(read_untrusted(path.parent, path.name, CASE_FILE_LIMIT))
    except BadYaml as error:
        yield problem_of_yaml(error, shown)
    except UnsafeFile as error:
        yield Problem(shown, 0, "", "", str(error), "A case file is a regular file of at most 4 MiB")
    except OSError as error:
        yield Problem(shown, 0, "", "", f"cannot be read: {error.strerror}", "Check the path and its permissions")
    else:
        yield from repeated_keys(document, shown)
        yield from _file_problems(document, shown)
        yield from _tasks(path, document)


def _file_problems(document: Document, shown: str) -> Iterator[Problem]:
    value = document.value
    if not isinstance(value, dict):
        yield Problem(shown, 1, "", "", "not a mapping", "Write `tasks:` with a list of tasks")
        return
    for key in value.keys() - set(FILE_KEYS):
        line = document.line((key,))
        yield Problem(shown, line, "", key, f"unknown key {key!r}", f"Known keys: {', '.join(FILE_KEYS)}")
    if not isinstance(value.get("tasks"), list) or not value["tasks"]:
        yield Problem(shown, document.line(("tasks",)), "", "tasks", "no tasks", "Write `tasks:` with a list of tasks")
    if not isinstance(value.get("defaults", {}), dict):
        yield Problem(shown, document.line(("defaults",)), "", "defaults", "not a mapping", "Write `key: value` pairs")
    if not isinstance(value.get("oracle_root", ""), str):
        line = document.line(("oracle_root",))
        yield Problem(shown, line, "", "oracle_root", "not a path", "Name a directory relative to the case file")


def _tasks(path: Path, document: Document) -> Iterator[LoadedTask | Problem]:
    value = document.value
    entries = value.get("tasks") if isinstance(value, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        base = ("tasks", index)
        if isinstance(entry, dict):
            yield from _one_task(path, document, index, entry)
        else:
            yield Problem(shown_path(path), document.line(base), "", "tasks", "a task is a mapping", "Write `- id: …`")


def _one_task(path: Path, document: Document, index: int, entry: dict[str, Any]) -> Iterator[LoadedTask | Problem]:
    shown, base = shown_path(path), ("tasks", index)
    name = entry.get("id") if isinstance(entry.get("id"), str) else f"#{index + 1}"
    try:
        task = Task.model_validate(_with_defaults(document.value, entry))
    except ValidationError as error:
        lines = Document(document.value, _lines_with_defaults(document, base, entry), ())
        yield from problems_of(error, Task, lines, base, shown, str(name))
        return
    root = find_oracle_root(path, document.value.get("oracle_root"))
    loaded = LoadedTask(task=task, file=path, line=document.line(base), oracle_root=root, hidden=HiddenFiles())
    hidden, faults = read_hidden(task, root)
    for fault in faults:
        line = document.line((*base, *fault.path))
        key = ".".join(str(part) for part in fault.path)
        yield Problem(shown, line, task.id, key, fault.message, fault.remedy)
    yield loaded.model_copy(update={"hidden": hidden})


def _with_defaults(value: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    defaults = value.get("defaults")
    merged = dict(defaults) if isinstance(defaults, dict) else {}
    if "kind" in value:
        merged["kind"] = value["kind"]
    return merged | entry


def _lines_with_defaults(document: Document, base: tuple[str, int], entry: dict[str, Any]) -> dict[Any, int]:
    """A fault in a defaulted key is shown where the default stands."""
    lines = dict(document.lines)
    for path, line in document.lines.items():
        if path[:1] == ("defaults",) and len(path) > 1 and path[1] not in entry:
            lines[(*base, *path[1:])] = line
    if "kind" not in entry and ("kind",) in lines:
        lines[(*base, "kind")] = lines[("kind",)]
    return lines
