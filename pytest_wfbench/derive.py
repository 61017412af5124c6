"""Everything that follows from a results directory: computed and written in one go, as often as one likes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.evidence.baseline import read_baseline
from pytest_wfbench.evidence.store import read_rows, read_sweep
from pytest_wfbench.files import append_text, write_atomic
from pytest_wfbench.promotion.gate import decide
from pytest_wfbench.promotion.model import Promotion
from pytest_wfbench.report.comment import render_comment
from pytest_wfbench.report.markdown import render_markdown
from pytest_wfbench.report.summary import Report, summarise_sweep
from pytest_wfbench.report.verdict import Verdict

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
SUMMARY_BYTES = 1_000_000
REPORT, COMMENT, PROMOTION = "report.md", "comment.md", "promotion.json"


@dataclass(frozen=True)
class Derived:
    """The one summary and the gate's decisions; ``promotion`` is none where no candidate was run."""

    summary: Report
    promotion: Promotion | None

    @property
    def verdict(self) -> Verdict:
        """The sweep's verdict."""
        return self.summary.verdict


def derive(directory: Path) -> Derived:
    """Compute everything from ``sweep.json``, ``results.jsonl`` and ``baseline.json``, and write nothing.

    Raises:
        EvidenceError: when the directory cannot be read.
    """
    rows, sweep = read_rows(directory), read_sweep(directory)
    promotion = decide(rows, sweep)
    decided = promotion.decisions
    return Derived(summarise_sweep(rows, sweep, decided, read_baseline(directory)), promotion if decided else None)


def derive_all(directory: Path) -> Derived:
    """Compute everything, and write ``report.md``, ``comment.md`` and ``promotion.json``, each atomically.

    Raises:
        EvidenceError: when the directory cannot be read.
    """
    derived = derive(directory)
    write_report(directory, derived)
    write_comment(directory, derived)
    write_promotion(directory, derived)
    return derived


def write_report(directory: Path, derived: Derived) -> str:
    """Write ``report.md`` and return its text."""
    return _write(directory / REPORT, render_markdown(derived.summary))


def write_comment(directory: Path, derived: Derived, key: str | None = None) -> str:
    """Write ``comment.md`` and return its text; ``key`` marks the comment that is updated in place."""
    return _write(directory / COMMENT, render_comment(derived.summary, key))


def append_summary(derived: Derived, environ: Mapping[str, str], key: str | None = None) -> str | None:
    """Append the comment to the CI step's summary, if there is one, and return what kept it from being written.

    It is written in as many bytes as what others have written there leaves of ``SUMMARY_BYTES``.
    """
    place = environ.get(STEP_SUMMARY)
    if not place:
        return None
    path = Path(place)
    try:
        room = SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)
        if append_text(path, render_comment(derived.summary, key, max(room, 0)), SUMMARY_BYTES):
            return None
    except OSError as error:
        return f"{STEP_SUMMARY} was not written: {error.strerror}"
    return f"{STEP_SUMMARY} was not written: what is there leaves no room"


def write_promotion(directory: Path, derived: Derived) -> str | None:
    """Write ``promotion.json`` and return its text; without a candidate there is none, and an old one is removed."""
    if derived.promotion is None:
        (directory / PROMOTION).unlink(missing_ok=True)
        return None
    return _write(directory / PROMOTION, derived.promotion.to_json())


def _write(path: Path, text: str) -> str:
    write_atomic(path, text)
    return text
