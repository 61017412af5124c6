"""A baseline: the summary of a valid sweep, filed so that later ones can be compared with it. No rows, no answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from pytest_wfbench.evidence.row import Block, Row
from pytest_wfbench.evidence.store import EvidenceError
from pytest_wfbench.files import UnsafeFile, read_untrusted, write_atomic
from pytest_wfbench.matrix.task import TaskKind

BASELINE = "baseline.json"
BASELINE_LIMIT = 32 << 20
FRESH = "File the sweep again with `wfbench baseline add`"
SWEEP_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[A-Za-z0-9]{1,32}\Z")

BaselineKind = Literal["branch", "main", "release"]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Question(NamedTuple):
    """What two sweeps share or do not: a task in one wording, and all that its result depends on, by digest."""

    task: str
    variation: int
    digest: str | None


class Filed(Block):
    """One task under one arm and subject: runs, and medians over the ``valid`` ones, unknown as null.

    ``tokens`` are all input, cached included, and output. ``accounting`` says how they were counted, and ``models``
    which answered.
    """

    task: str
    variation: int = 0
    arm: str
    subject: str
    task_kind: TaskKind
    task_digest: str | None = None
    runs: Count
    valid: Count
    resolved: Count
    unusable: Count
    tokens: Amount | None = None
    cost_usd: Amount | None = None
    wall: Amount | None = None
    turns: Amount | None = None
    tools: Amount | None = None
    models: tuple[str, ...] = ()
    accounting: tuple[str, ...] = ()

    @field_validator("valid", "resolved", "unusable")
    @classmethod
    def _no_more_than_runs(cls, value: int, info: ValidationInfo) -> int:
        most = info.data.get("valid" if info.field_name == "resolved" else "runs")
        if most is not None and value > most:
            raise ValueError(f"{value} of {most}")
        return value

    @property
    def question(self) -> Question:
        """What this is the result of."""
        return Question(self.task, self.variation, self.task_digest)


class Baseline(Block):
    """A filed sweep. ``kind`` and ``name`` say what it stands for, ``word`` was its verdict, times are UTC."""

    schema_version: Literal[1] = 1
    kind: BaselineKind
    name: str = Field(min_length=1, max_length=200)
    sweep_id: str = Field(pattern=SWEEP_ID.pattern.replace(r"\Z", "$"))
    started_at: str
    head: str | None = None
    word: Literal["PASS", "PASS WITH MISSES", "BELOW FLOOR"]
    passed: Count
    graded: Count
    harness_version: str
    entries: tuple[Filed, ...]

    def to_json(self) -> str:
        """Return the baseline as indented JSON."""
        return self.model_dump_json(indent=1) + "\n"

    def shared(self, questions: Iterable[Question]) -> tuple[Filed, ...]:
        """Return the entries whose task is among these, unchanged since."""
        wanted = frozenset(questions)
        return tuple(entry for entry in self.entries if entry.question in wanted)


def questions_of(rows: Iterable[Row]) -> frozenset[Question]:
    """Return what rows are results of."""
    return frozenset(Question(row.task, row.variation, row.task_digest) for row in rows)


def parse_baseline(data: bytes, place: str) -> Baseline:
    """Read a baseline that was filed.

    Raises:
        EvidenceError: when it is none, or one of another schema.
    """
    try:
        return Baseline.model_validate_json(data)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise EvidenceError(place, f"no baseline that this version reads: {where}: {fault['msg']}", FRESH) from error


def read_baseline(directory: Path) -> Baseline | None:
    """Return what a results directory is compared with, or none.

    Raises:
        EvidenceError: when what is there is no baseline.
    """
    place = str(directory / BASELINE)
    try:
        return parse_baseline(read_untrusted(directory, BASELINE, BASELINE_LIMIT), place)
    except FileNotFoundError:
        return None
    except (UnsafeFile, OSError) as error:
        raise EvidenceError(place, str(error), FRESH) from error


def write_baseline(directory: Path, baseline: Baseline | None) -> None:
    """Keep what a results directory is compared with beside its rows, so that its reports need nothing else."""
    if baseline is None:
        (directory / BASELINE).unlink(missing_ok=True)
    else:
        write_atomic(directory / BASELINE, baseline.to_json())
