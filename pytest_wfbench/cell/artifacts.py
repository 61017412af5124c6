"""The files a cell leaves in the results directory, redacted before they touch the disk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.cell.review import Review
from pytest_wfbench.cell.sessions import SessionEnd
from pytest_wfbench.digests import digest_bytes
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.files import write_atomic
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sweep.context import SweepContext
from pytest_wfbench.workspace.churn import Change

CELLS = "cells"
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
STDERR = "stderr.txt"


@dataclass(frozen=True)
class Artifacts:
    """Digests of what was kept."""

    transcript: str
    patch: str | None


def cell_directory(results: Path, cell_id: str, attempt: int) -> Path:
    """Return where the artifacts of one attempt lie."""
    return results / CELLS / cell_id / str(attempt)


def keep_artifacts(
    cell: Cell,
    sessions: Sequence[SessionEnd],
    change: Change | None,
    sweep: SweepContext,
    attempt: int = 1,
    review: Review | None = None,
) -> Artifacts:
    """Write ``transcript.jsonl``, ``stderr.txt`` and ``patch.diff`` or ``review.json`` of one attempt of a cell."""
    directory = cell_directory(sweep.results, cell.id, attempt)
    directory.mkdir(parents=True, exist_ok=True)
    transcript = "".join(f"{line}\n" for line in _transcript(sessions, sweep.redactor)).encode()
    write_atomic(directory / "transcript.jsonl", transcript)
    errors = "".join(f"== {end.name}\n{_printable(end.finished.stderr, sweep.redactor)}\n" for end in sessions)
    write_atomic(directory / STDERR, errors)
    if review and review.artifact:
        found = sweep.redactor.value(review.artifact.model_dump(mode="json"))
        write_atomic(directory / "review.json", json.dumps(found, ensure_ascii=True, indent=1) + "\n")
    patch = None
    if change and change.patch:
        data = sweep.redactor.text(change.patch.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        write_atomic(directory / "patch.diff", data)
        patch = digest_bytes(data)
    return Artifacts(digest_bytes(transcript), patch)


def _printable(said: bytes, redactor: Redactor) -> str:
    """Return what a session printed as text that does nothing to a terminal: what is invisible is spelled out."""
    return INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", redactor.text(said.decode(errors="replace")))


def _transcript(sessions: Sequence[SessionEnd], redactor: Redactor) -> Iterator[str]:
    for end in sessions:
        for event in end.transcript.events:
            plain = {"session": end.name, **event.model_dump(mode="json")}
            yield json.dumps(redactor.value(plain), ensure_ascii=True)
