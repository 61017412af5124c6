"""One problem from a case file, as a frozen value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, field_validator, model_validator

from pytest_wfbench.matrix.checks import Check
from pytest_wfbench.matrix.fields import (
    Frozen,
    InsidePath,
    Location,
    Paths,
    Seconds,
    Size,
    Slug,
    Tags,
    Text,
    Texts,
    Variable,
    items,
    with_rules,
)

TaskKind = Literal["implementation", "review", "question"]

MAX_FILES = 64
# Where directories can be mounted beside the workspace; the harness has a place of its own there.
MOUNTABLE = frozenset({("/", "opt"), ("/", "srv"), ("/", "mnt")})
RESERVED = ("/", "opt", "wfbench")
NEEDED = {
    "implementation": ("prompt", "repo", "verify", "oracle"),
    "review": ("prompt", "repo", "patch", "labels"),
}
# What only some kinds of tasks have; on others it would be passed over in silence.
OF_QUESTIONS = ("steps", "rubric", "checks")
OF_REVIEWS = ("patch", "labels")
OF_IMPLEMENTATIONS = ("verify", "oracle", "reference", "reference_bad")
OWNED = {"question": OF_QUESTIONS, "review": OF_REVIEWS, "implementation": OF_IMPLEMENTATIONS}
MAX_STEPS, MAX_CHECKS = 32, 64


class Timeouts(Frozen):
    """Wall clock of each phase, in seconds."""

    session: Seconds = 1800.0
    setup: Seconds = 600.0
    verify: Seconds = 600.0
    oracle: Seconds = 600.0


class Limits(Frozen):
    """What a sandbox may use: bytes, and numbers of processes and of files in the workspace (``inodes``)."""

    memory: Size = 8 << 30
    processes: int = Field(512, ge=8, le=32768)
    disk: Size = 4 << 30
    file_size: Size = 1 << 30
    inodes: int = Field(500_000, ge=8, le=100_000_000)


class Dependency(Frozen):
    """A directory mounted read-only; ``target`` is a path in the sandbox, below one of ``MOUNTABLE``."""

    source: Text
    target: Text

    @field_validator("target")
    @classmethod
    def _mountable(cls, value: str) -> str:
        parts = PurePosixPath(value).parts
        if len(parts) < 3 or parts[:2] not in MOUNTABLE or ".." in parts or parts[:3] == RESERVED:
            raise ValueError(f"cannot be mounted at {value!r}: name a path such as /opt/libraries, /srv/… or /mnt/…")
        return str(PurePosixPath(value))


class McpServer(Frozen):
    """A stdio MCP server."""

    command: Annotated[tuple[Text, ...], BeforeValidator(items)] = Field(min_length=1)
    env: dict[Variable, str] = Field(default_factory=dict)


class OracleFile(Frozen):
    """A hidden file: ``source`` below the oracle root, ``target`` below the directory it is staged in."""

    source: InsidePath
    target: InsidePath


class OracleSpec(Frozen):
    """Hidden files and the command that decides ``resolved``."""

    command: Text
    files: Annotated[tuple[OracleFile, ...], BeforeValidator(items)] = Field(min_length=1, max_length=MAX_FILES)
    results: Literal["junit", "exit"]

    @model_validator(mode="wrap")
    @classmethod
    def _with_rules(cls, value: Any, build: ModelWrapValidatorHandler[OracleSpec]) -> OracleSpec:
        return with_rules(value, build, _oracle_rules)


def _oracle_rules(raw: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    targets = _targets(raw.get("files"))
    for index, target in targets.items():
        where = ("files", index, "target")
        earlier = [other for place, other in targets.items() if place < index]
        if target in earlier:
            yield where, f"the target {str(target)!r} is used twice: rename one of them"
        elif any(other in target.parents or target in other.parents for other in earlier):
            yield where, f"the target {str(target)!r} lies in another target, or holds one: rename one of them"
    command = raw.get("command")
    if isinstance(command, str) and command.strip():
        if targets and not any(_names(command, target) for target in targets.values()):
            yield ("command",), "the command names no staged file: name one of the targets below $WFBENCH_ORACLE_ROOT"
        if raw.get("results") == "junit" and "WFBENCH_ORACLE_RESULTS" not in command:
            yield ("command",), "the command writes no results: let it write JUnit XML to $WFBENCH_ORACLE_RESULTS"


def _targets(files: Any) -> dict[int, PurePosixPath]:
    """Return the targets that are texts, by their place in the list."""
    entries = files[:MAX_FILES] if isinstance(files, list | tuple) else ()
    found = {i: entry.get("target") if isinstance(entry, dict) else None for i, entry in enumerate(entries)}
    return {index: PurePosixPath(target) for index, target in found.items() if isinstance(target, str) and target}


def _names(command: str, target: PurePosixPath) -> bool:
    """Whether the target stands in the command as a whole path, not as a piece of another word."""
    return re.search(rf"(?<![\w.-]){re.escape(str(target))}(?![\w-])", command) is not None


class Task(Frozen):
    """One problem. Fields are those of the case file; durations are in seconds, sizes in bytes."""

    id: Slug
    kind: TaskKind
    class_: Text | None = Field(None, alias="class")
    repo: Text | None = None
    ref: Text | None = None
    private: Paths = ()
    prompt: Text | None = None
    steps: Annotated[tuple[Text, ...], BeforeValidator(items)] = Field((), max_length=MAX_STEPS)
    variations: Texts = ()
    setup: Text | None = None
    verify: Text | None = None
    timeout: Timeouts = Timeouts()
    limits: Limits = Limits()
    dependencies: Annotated[tuple[Dependency, ...], BeforeValidator(items)] = ()
    mcp: dict[Slug, McpServer] = Field(default_factory=dict)
    provider_tools: Texts = ()
    expensive: bool = False
    tags: Tags = ()
    oracle: OracleSpec | None = None
    reference: InsidePath | None = None
    reference_bad: Paths = ()
    patch: InsidePath | None = None
    labels: InsidePath | None = None
    rubric: Text | None = None
    checks: Annotated[tuple[Check, ...], BeforeValidator(items)] = Field((), max_length=MAX_CHECKS)

    @field_validator("timeout", mode="before")
    @classmethod
    def _one_duration(cls, value: Any) -> Any:
        """One duration is the session's."""
        return {"session": value} if isinstance(value, str) else value

    @field_validator("ref")
    @classmethod
    def _no_option(cls, value: str | None) -> str | None:
        if value and (value.startswith("-") or not value.isprintable() or " " in value):
            raise ValueError("not a git ref: write a branch, a tag or a commit")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _with_rules(cls, value: Any, build: ModelWrapValidatorHandler[Task]) -> Task:
        return with_rules(value, build, _task_rules)

    @property
    def hides(self) -> bool:
        """Whether files of its oracle root decide what a cell is worth."""
        return self.oracle is not None or self.labels is not None

    def prompt_of(self, variation: int) -> str:
        """Return the wording of a variation; 0 is the original, of a conversation its first step."""
        return self.steps_of(variation)[0]

    def steps_of(self, variation: int) -> tuple[str, ...]:
        """Return all that an agent is told in a variation, in one conversation: mostly one prompt."""
        if variation:
            return (self.variations[variation - 1],)
        return self.steps or (self.prompt or "",)


def _task_rules(raw: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    kind = raw.get("kind")
    for name in NEEDED.get(kind, ()) if isinstance(kind, str) else ():
        if raw.get(name) is None:
            yield (name,), f"required key {name!r} is missing: add it, every task of kind {kind} has one"
    for owner, names in OWNED.items() if isinstance(kind, str) and kind in OWNED else ():
        for name in names if kind != owner else ():
            if raw.get(name):
                yield (name,), f"{name} is for tasks of kind {owner}: leave it out"
    if kind == "question":
        yield from _question_rules(raw)


def _question_rules(raw: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    if raw.get("prompt") is None and not raw.get("steps"):
        yield ("prompt",), "required key 'prompt' is missing: add it, or `steps` for a conversation"
    elif raw.get("prompt") is not None and raw.get("steps"):
        yield ("steps",), "the question has a prompt and steps: keep one of them"
    if raw.get("steps") and raw.get("variations"):
        yield ("variations",), "variations are other wordings of a prompt: a conversation has none, leave them out"
    if not raw.get("rubric") and not raw.get("checks"):
        yield ("rubric",), "nothing says what a good answer is: add a `rubric`, `checks`, or both"
    for name in ("ref", "private") if raw.get("repo") is None else ():
        if raw.get(name):
            yield (name,), f"{name} is of a repository, and the question has none: add `repo`, or leave it out"
