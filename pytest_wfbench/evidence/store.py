"""Rows and manifest on disk: appended and fsynced one by one, read back without trust."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.files import UnsafeFile, append_line, read_untrusted, write_atomic
from pytest_wfbench.matrix.problems import printable

ROWS = "results.jsonl"
SWEEP = "sweep.json"
ROWS_LIMIT = 1 << 30
SWEEP_LIMIT = 256 << 20
FRESH = "Run the sweep again, or restore the file from where it was archived"

RunKey = tuple[str, int, str, str, int]


class EvidenceError(Exception):
    """A results directory that cannot be read: one line with the file, the line and the remedy."""

    def __init__(self, place: str, message: str, remedy: str) -> None:
        # It may quote the file, whose words are not to act where the line is shown.
        super().__init__(f"{place}: {printable(message)}. {remedy}")


@dataclass(frozen=True)
class Run:
    """One cell's attempts, oldest first. The newest speaks for the cell; every attempt was paid for."""

    attempts: tuple[Row, ...]

    @property
    def row(self) -> Row:
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def key(self) -> RunKey:
        """(task, variation, arm, subject, run)."""
        return run_key(self.row)


@dataclass(frozen=True)
class Rows:
    """All rows of a results directory in the order of the file.

    ``torn`` describes a last line that a power cut left unfinished; ``duplicates`` names attempts that are there twice.
    """

    rows: tuple[Row, ...]
    torn: str | None = None
    duplicates: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The cells with their attempts, in an order that does not depend on that of the rows."""
        return collect_runs(self.rows)


def run_key(row: Row) -> RunKey:
    """Return what a cell is known by, attempts aside."""
    return (row.task, row.variation, row.arm, row.subject, row.run)


def collect_runs(rows: Iterable[Row]) -> tuple[Run, ...]:
    """Group rows into cells, whatever their order, even where two claim to be the same attempt."""
    cells: dict[RunKey, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        tries = cells[run_key(row)]
        twin = tries.setdefault(row.attempt, row)
        tries[row.attempt] = twin if twin == row else min(twin, row, key=Row.to_json)
    return tuple(Run(tuple(tries[n] for n in sorted(tries))) for _, tries in sorted(cells.items()))


class RowWriter:
    """The one writer of ``results.jsonl``. An unfinished last line is dropped before anything is appended."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / ROWS

    def append(self, row: Row) -> None:
        """Add a row; it is on the disk when this returns."""
        drop_torn(self._path)
        append_line(self._path, row.to_json())


def drop_torn(path: Path) -> None:
    """Remove an unfinished last line; a whole row that lacks only its line end is kept."""
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as stream:
        stream.seek(-1, 2)
        if stream.read(1) == b"\n":
            return
    data = path.read_bytes()
    head, _, tail = data.rpartition(b"\n")
    kept = data if _is_json(tail) else head
    write_atomic(path, kept + b"\n" if kept else b"")


def read_rows(directory: Path) -> Rows:
    """Read all rows; a directory without any is a sweep that had not finished a cell.

    Raises:
        EvidenceError: for a missing directory, a line that is no row, or a file that must not be trusted.
    """
    _require(directory)
    try:
        lines = read_untrusted(directory, ROWS, ROWS_LIMIT).split(b"\n")
    except FileNotFoundError:
        return Rows(())
    except (UnsafeFile, OSError) as error:
        raise EvidenceError(str(directory / ROWS), _because(error), FRESH) from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip(b"\0 \r\t")]
    torn = None
    if numbered and not _is_json(numbered[-1][1]):
        number, line = numbered.pop()
        torn = f"{ROWS} line {number}: unfinished last line of {len(line)} bytes, not counted"
    known: dict[frozenset[str], set[str]] = {}
    rows = tuple(_slim(_row(directory / ROWS, number, line), known) for number, line in numbered)
    return Rows(rows, torn, _duplicates(rows))


def read_sweep(directory: Path) -> Sweep:
    """Read the manifest.

    Raises:
        EvidenceError: when it is missing, unreadable, or of another schema.
    """
    _require(directory)
    place = str(directory / SWEEP)
    try:
        return Sweep.model_validate_json(read_untrusted(directory, SWEEP, SWEEP_LIMIT))
    except FileNotFoundError as error:
        raise EvidenceError(place, "no such file", "Name a results directory, such as results/latest") from error
    except ValidationError as error:
        raise EvidenceError(place, _first_fault(error), FRESH) from error
    except (UnsafeFile, OSError) as error:
        raise EvidenceError(place, _because(error), FRESH) from error


def write_sweep(directory: Path, sweep: Sweep) -> None:
    """Replace the manifest atomically."""
    write_atomic(directory / SWEEP, sweep.to_json())


def _require(directory: Path) -> None:
    if not directory.is_dir():
        what = "not a directory" if directory.exists() else "no such directory"
        raise EvidenceError(str(directory), what, "Name a results directory, such as results/latest")


def _row(path: Path, number: int, line: bytes) -> Row:
    try:
        return Row.model_validate_json(line)
    except ValidationError as error:
        raise EvidenceError(f"{path}:{number}", _first_fault(error), FRESH) from error


def _slim(row: Row, known: dict[frozenset[str], set[str]]) -> Row:
    """Share among rows what pydantic notes of each: which fields were given. It is half of a row's memory.

    pydantic copies it before it changes it.
    """
    for block in (row, row.usage, row.timings, row.churn):
        if block is not None:
            given = block.model_fields_set
            object.__setattr__(block, "__pydantic_fields_set__", known.setdefault(frozenset(given), given))
    return row


def _duplicates(rows: tuple[Row, ...]) -> tuple[str, ...]:
    seen: set[tuple[RunKey, int]] = set()
    twice: set[str] = set()
    for row in rows:
        key = (run_key(row), row.attempt)
        if key in seen:
            twice.add(f"{row.cell_id} attempt {row.attempt}")
        seen.add(key)
    return tuple(sorted(twice))


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg']}" if where else fault["msg"]


def _because(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
