"""Cassettes: scripts of what a model answers, one file each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.gateway.api import Labels
from pytest_wfbench.gateway.conversation import side_of, subagents
from pytest_wfbench.gateway.reported import ProviderName, Reported, unreportable
from pytest_wfbench.matrix.faults import problem_of_yaml, problems_of, yaml_problems
from pytest_wfbench.matrix.problems import Problem, shown_path
from pytest_wfbench.matrix.yamldoc import BadYaml, read_yaml

ANY = "*"
MAX_BYTES = 16 << 20
MAX_DELAY = 3600.0
SUFFIXES = (".yaml", ".yml")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)\Z")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

Stop = Literal["end_turn", "tool_use", "max_tokens", "refusal"]


class CassetteError(Exception):
    """Every fault of a cassette directory, one line each, with file, line, key and remedy."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


class _Script(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _seconds(value: Any) -> Any:
    match = DURATION.match(value) if isinstance(value, str) else None
    if match:
        return float(match[1]) * UNITS[match[2]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError("not a duration: write 0.5, 500ms, 2s or 1m")


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=MAX_DELAY)]


class Match(_Script):
    """For whom a cassette is: each field a value, or ``*`` for anyone."""

    task: str = ANY
    variation: int | Literal["*"] = "*"
    arm: str = ANY
    session: str = ANY
    run: int | Literal["*"] = "*"
    agent: str = ANY

    def fits(self, labels: Labels) -> bool:
        """Whether the cassette is for these labels."""
        return all(value in (ANY, getattr(labels, name)) for name, value in self)

    @property
    def specificity(self) -> int:
        """How many fields are bound."""
        return sum(value != ANY for _, value in self)


class Tool(_Script):
    """A tool the model calls. ``raw`` is what it wrote in place of an input, where that is no JSON object."""

    name: Annotated[str, Field(min_length=1)]
    input: dict[str, Any] = Field(default_factory=dict)
    raw: str | None = None


class Failure(_Script):
    """An error in place of the answer: the first ``times`` times, or always."""

    status: Annotated[int, Field(ge=400, le=599)]
    type: str = "api_error"
    message: str = "scripted error"
    retry_after: Annotated[int, Field(ge=0)] | None = None
    times: Annotated[int, Field(ge=1)] | None = None


class Turn(_Script):
    """One answer. ``on`` moves it to a side conversation; ``delay`` is in seconds, before the first byte.

    ``model`` says who answers where it is not the cassette's; ``first`` what the same request got before, once each.
    """

    text: str = ""
    tools: Annotated[tuple[Tool, ...], BeforeValidator(_tuple)] = ()
    usage: Reported | None = None
    delay: Seconds = 0.0
    error: Failure | None = None
    cut: bool = False
    stop: Stop | None = None
    on: Annotated[str, Field(pattern=r"^(title|subagent:\S+)$")] | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    first: Annotated[tuple[Turn, ...], BeforeValidator(_tuple)] = ()

    @model_validator(mode="after")
    def _answers(self) -> Self:
        only_fails = self.error is not None and self.error.times is None
        if self.usage is None and not only_fails:
            raise ValueError("required key 'usage' is missing: write the tokens, or `usage: {}` if none are reported")
        if self.cut and self.error:
            raise ValueError("cut and error exclude each other: use two turns")
        if any(earlier.on or earlier.first for earlier in self.first):
            raise ValueError("what comes first is of the same turn: leave `on` and `first` out of it")
        return self


class Cassette(_Script):
    """One file: who answers, for whom, and what."""

    PAGE: ClassVar[str] = "docs/cassettes.md"

    model: Annotated[str, Field(min_length=1, pattern=r"^[^\s/]\S*$")]
    provider: ProviderName
    match: Match = Match()
    turns: Annotated[tuple[Turn, ...], BeforeValidator(_tuple), Field(min_length=1)]

    @model_validator(mode="after")
    def _reportable(self) -> Self:
        for number, turn in enumerate(self.turns, 1):
            for answer in (*turn.first, turn):
                if answer.usage is not None and (fault := unreportable(self.provider, answer.usage)):
                    raise ValueError(f"turn {number}, {fault}")
        return self


@dataclass(frozen=True)
class Script:
    """A cassette and the file it was read from."""

    file: Path
    cassette: Cassette

    @property
    def name(self) -> str:
        """The file's name, without the host's directories: it is told to sandboxes."""
        return f"{self.file.parent.name}/{self.file.name}" if self.file.parent.name else self.file.name

    def turns(self, on: str | None) -> tuple[Turn, ...]:
        """Return the turns of one conversation: the main one, or that of ``on``."""
        return tuple(turn for turn in self.cassette.turns if turn.on == on)

    def subagent_of(self, prompt: str) -> str | None:
        """Return whose conversation this prompt opens, where a scripted tool call starts a subagent with it.

        The second of one name is ``subagent:<name>#2`` if it has turns of its own, else it shares those of the first.
        """
        found = side_of(subagents(inputs_of(self.cassette.turns)), prompt)
        if found and not self.turns(found):
            return found.rpartition("#")[0] or found
        return found


def inputs_of(turns: Iterable[Turn]) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of all tool calls of some turns."""
    return (tool.input for turn in turns for answer in (*turn.first, turn) for tool in answer.tools)


@dataclass(frozen=True)
class CassetteSet:
    """All cassettes of a directory."""

    directory: Path
    scripts: tuple[Script, ...]

    def find(self, labels: Labels) -> Script:
        """Return the most specific cassette for the labels.

        Raises:
            CassetteError: when none fits, or when several equally specific ones do.
        """
        fitting = [script for script in self.scripts if script.cassette.match.fits(labels)]
        best = max((script.cassette.match.specificity for script in fitting), default=0)
        chosen = [script for script in fitting if script.cassette.match.specificity == best]
        if len(chosen) == 1:
            return chosen[0]
        shown = " ".join(f"{name}={value}" for name, value in labels)
        if not chosen:
            fault, remedy = "no cassette fits", "Add one, or widen a `match`"
        else:
            names = ", ".join(script.file.name for script in chosen)
            fault, remedy = f"equally specific cassettes fit: {names}", "Make one of them more specific"
        raise CassetteError(Problem(shown_path(self.directory), 0, labels.task, "match", f"{fault} {shown}", remedy))


def load_cassettes(directory: Path) -> CassetteSet:
    """Read every ``*.yaml`` of a directory.

    Raises:
        CassetteError: with every fault of every file.
    """
    files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES) if directory.is_dir() else []
    if not files:
        raise CassetteError(
            Problem(shown_path(directory), 0, "", "", "no cassettes here", "Put *.yaml scripts into the directory")
        )
    scripts: list[Script] = []
    problems: list[Problem] = []
    for path in files:
        try:
            scripts.append(Script(path, _read(path)))
        except CassetteError as error:
            problems.extend(error.problems)
    if problems:
        raise CassetteError(*problems)
    return CassetteSet(directory, tuple(scripts))


def _read(path: Path) -> Cassette:
    file = shown_path(path)
    try:
        document = read_yaml(read_untrusted(path.parent, path.name, MAX_BYTES))
    except BadYaml as error:
        raise CassetteError(problem_of_yaml(error, file)) from None
    except (UnsafeFile, OSError) as error:
        raise CassetteError(Problem(file, 0, "", "", str(error), "Put a plain file in its place")) from None
    if faults := list(yaml_problems(document, file)):
        raise CassetteError(*faults)
    try:
        return Cassette.model_validate(document.value)
    except ValidationError as error:
        raise CassetteError(*problems_of(error, Cassette, document, (), file, "")) from None
