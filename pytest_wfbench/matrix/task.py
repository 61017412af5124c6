"""One problem from a case file, as a frozen value."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

SLUG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}\Z")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)\Z")
SIZE = re.compile(r"(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)\Z")
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

TaskKind = Literal["implementation", "review", "question"]


class Frozen(BaseModel):
    """Base of every model of what is asked for: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        match = DURATION.match(value)
        if not match or float(match[1]) <= 0:
            raise ValueError("not a duration: write 90s, 20m or 2h")
        return float(match[1]) * SECONDS[match[2]]
    if isinstance(value, float):
        return value
    raise ValueError("not a duration: write 90s, 20m or 2h")


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        match = SIZE.match(value)
        if not match or float(match[1]) <= 0:
            raise ValueError("not a size: write 512MiB or 8GiB")
        return int(float(match[1]) * BYTES[match[2]])
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ValueError("not a size: write 512MiB or 8GiB")


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if not value.strip() or path.is_absolute() or ".." in path.parts or value.startswith("~") or "\0" in value:
        raise ValueError("the path must be relative and must not leave its root")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def _slug(value: str) -> str:
    if not SLUG.match(value):
        raise ValueError("not a slug: use at most 80 of a-z, 0-9, _, . and -, starting with a letter or digit")
    return value


def _items(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Slug = Annotated[str, AfterValidator(_slug)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
Size = Annotated[int, BeforeValidator(_bytes)]
InsidePath = Annotated[str, AfterValidator(_inside)]
Text = Annotated[str, AfterValidator(_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_items)]
Paths = Annotated[tuple[InsidePath, ...], BeforeValidator(_items)]


class Timeouts(Frozen):
    """Wall clock of each phase, in seconds."""

    session: Seconds = 1800.0
    setup: Seconds = 600.0
    verify: Seconds = 600.0
    oracle: Seconds = 600.0


class Limits(Frozen):
    """What a sandbox may use: bytes, and a number of processes."""

    memory: Size = 8 << 30
    processes: int = Field(512, ge=8, le=32768)
    disk: Size = 4 << 30
    file_size: Size = 1 << 30


class Dependency(Frozen):
    """A directory mounted read-only; ``target`` is a path in the sandbox."""

    source: Text
    target: Text


class McpServer(Frozen):
    """A stdio MCP server."""

    command: Texts
    env: dict[str, str] = Field(default_factory=dict)


class OracleFile(Frozen):
    """A hidden file: ``source`` below the oracle root, ``target`` below the directory it is staged in."""

    source: InsidePath
    target: InsidePath


class OracleSpec(Frozen):
    """Hidden files and the command that decides ``resolved``."""

    command: Text
    files: Annotated[tuple[OracleFile, ...], BeforeValidator(_items)] = Field(min_length=1, max_length=64)
    results: Literal["junit", "exit"]

    @model_validator(mode="after")
    def _names_a_file(self) -> OracleSpec:
        targets = [entry.target for entry in self.files]
        if len(set(targets)) != len(targets):
            raise ValueError("two files have the same target")
        if not any(target in self.command for target in targets):
            raise ValueError("the command names no staged file: name one of the targets below $WFBENCH_ORACLE_ROOT")
        if self.results == "junit" and "WFBENCH_ORACLE_RESULTS" not in self.command:
            raise ValueError("results: junit needs a command that writes $WFBENCH_ORACLE_RESULTS")
        return self


class Task(Frozen):
    """One problem. Fields are those of the case file; durations are in seconds, sizes in bytes."""

    id: Slug
    kind: TaskKind
    class_: Text | None = Field(None, alias="class")
    repo: Text | None = None
    ref: Text | None = None
    private: Paths = ()
    prompt: Text
    variations: Texts = ()
    setup: Text | None = None
    verify: Text | None = None
    timeout: Timeouts = Timeouts()
    limits: Limits = Limits()
    dependencies: Annotated[tuple[Dependency, ...], BeforeValidator(_items)] = ()
    mcp: dict[str, McpServer] = Field(default_factory=dict)
    provider_tools: Texts = ()
    expensive: bool = False
    tags: Texts = ()
    oracle: OracleSpec | None = None
    reference: InsidePath | None = None
    reference_bad: Paths = ()

    @field_validator("timeout", mode="before")
    @classmethod
    def _one_duration(cls, value: Any) -> Any:
        """One duration is the session's."""
        return {"session": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _whole(self) -> Task:
        if self.kind == "implementation":
            missing = [name for name in ("repo", "verify", "oracle") if getattr(self, name) is None]
            if missing:
                raise ValueError(f"an implementation task needs {', '.join(missing)}")
        return self

    def prompt_of(self, variation: int) -> str:
        """Return the wording of a variation; 0 is the original."""
        return self.variations[variation - 1] if variation else self.prompt
