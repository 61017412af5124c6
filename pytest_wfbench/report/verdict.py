"""The verdict of a sweep: one word, the same in exit status, comment, terminal and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.store import Rows, Run
from pytest_wfbench.statistics.aggregate import is_graded

TOLERANCE = 1e-9

Word = Literal["BROKEN", "INCOMPLETE", "BELOW FLOOR", "PASS WITH MISSES", "PASS"]

GLYPHS: tuple[tuple[Word, str], ...] = (
    ("BROKEN", "💥"),
    ("INCOMPLETE", "🚧"),
    ("BELOW FLOOR", "📉"),
    ("PASS WITH MISSES", "🟡"),
    ("PASS", "✅"),
)
# Stops that end cells which had begun; such a cell says nothing about the pipeline's health.
CUTTING_STOPS = frozenset({"interrupted", "budget"})
# Kinds of skipped cells that would have been run, had the sweep not been stopped.
STOPS = frozenset({"outage-stop", "budget-stop"})


@dataclass(frozen=True)
class Counts:
    """Cells of the sweep: ``planned`` = ``passed`` + ``missed`` + ``unusable`` + ``skipped`` + ``absent``.

    ``cancelled`` are of the unusable; ``stopped`` of the skipped: those that budget or outage kept from being run.
    """

    planned: int
    passed: int
    missed: int
    unusable: int
    skipped: int
    absent: int
    cancelled: int
    stopped: int

    @property
    def graded(self) -> int:
        """Cells that are evidence about quality."""
        return self.passed + self.missed

    @property
    def attempted(self) -> int:
        """Cells that were run, whatever came of them."""
        return self.graded + self.unusable


@dataclass(frozen=True)
class Verdict:
    """``word`` and what stands beside it. ``graded_share`` is graded / planned; ``cause`` is one line, none for PASS.

    ``pass_rate`` is over graded implementation and question cells, the ones a floor speaks of; none without any.
    """

    word: Word
    exit_status: int
    counts: Counts
    graded_share: float | None
    pass_rate: float | None
    cause: str | None

    @property
    def glyph(self) -> str:
        """The word's sign."""
        return dict(GLYPHS)[self.word]


@dataclass(frozen=True)
class _Facts:
    sweep: Sweep
    counts: Counts
    pass_rate: float | None
    kinds: Counter[str]


_Found = tuple[Word, int, str | None]


def judge(rows: Rows, sweep: Sweep) -> Verdict:
    """Return the sweep's verdict: the first that applies of BROKEN, INCOMPLETE, BELOW FLOOR, PASS WITH MISSES, PASS."""
    facts = _gather(rows.runs, sweep)
    found = next(filter(None, (rule(facts) for rule in RULES)), ("PASS", 0, None))
    word, status, cause = found
    share = facts.counts.graded / facts.counts.planned if facts.counts.planned else None
    return Verdict(word, status, facts.counts, share, facts.pass_rate, cause)


def _gather(runs: Iterable[Run], sweep: Sweep) -> _Facts:
    newest = [run.row for run in runs]
    outcomes = Counter(row.outcome for row in newest)
    present = {row.cell_id for row in newest}
    planned = {cell.cell_id for cell in sweep.planned}
    skipped = sweep.skipped_ids - present
    absent = planned - present - skipped
    floored = [row for row in newest if is_graded(row) and row.task_kind != "review"]
    counts = Counts(
        planned=len(planned | present | skipped),
        passed=outcomes["pass"],
        missed=outcomes["miss"],
        unusable=outcomes["unusable"],
        skipped=len(skipped) + outcomes["skipped"],
        absent=len(absent),
        cancelled=sum(row.kind == "cancelled" for row in newest),
        stopped=len({cell.cell_id for cell in sweep.skipped if cell.kind in STOPS and cell.cell_id} - present),
    )
    rate = sum(row.outcome == "pass" for row in floored) / len(floored) if floored else None
    kinds = Counter(row.kind or "unknown" for row in newest if row.outcome == "unusable")
    return _Facts(sweep, counts, rate, kinds)


def _stopped_early(facts: _Facts) -> _Found | None:
    stop = facts.sweep.stop
    return ("BROKEN", 1, stop.cause) if stop and stop.kind in ("preflight", "outage") else None


def _unusable(facts: _Facts) -> _Found | None:
    stop = facts.sweep.stop
    cut = facts.counts.cancelled if stop and stop.kind in CUTTING_STOPS else 0
    broken, tolerated = facts.counts.unusable - cut, facts.sweep.options.max_unusable
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(facts.kinds.items()))
    if broken > tolerated:
        return "BROKEN", 1, f"{broken} of {facts.counts.planned} cells unusable, {tolerated} tolerated: {kinds}"
    if broken > 0 and not facts.counts.graded:
        return "BROKEN", 1, f"no cell could be graded, {broken} unusable: {kinds}"
    return None


def _incomplete(facts: _Facts) -> _Found | None:
    sweep, counts = facts.sweep, facts.counts
    wanted = counts.planned - counts.skipped + counts.stopped
    left = f"{counts.absent + counts.cancelled + counts.stopped} of {wanted} cells without a result"
    if sweep.stop:
        status = 2 if sweep.stop.kind == "interrupted" else 1
        return "INCOMPLETE", status, f"{sweep.stop.cause}; {left}"
    if sweep.run_status == "running":
        return "INCOMPLETE", 2, f"the sweep never ended; {left}"
    if sweep.missing_shards:
        return "INCOMPLETE", 1, f"shards that never reported: {', '.join(sweep.missing_shards)}"
    if sweep.run_status == "aborted" or counts.absent:
        return "INCOMPLETE", 2 if sweep.exit_status == 2 else 1, f"the sweep ended early; {left}"
    return None


def _below_floor(facts: _Facts) -> _Found | None:
    floor, rate = facts.sweep.options.min_pass, facts.pass_rate
    only_reviews = rate is None and facts.counts.graded > 0
    if floor is None or only_reviews or (rate is not None and rate >= floor - TOLERANCE):
        return None
    shown = "no cell was graded" if rate is None else f"{100 * rate:.1f} % of graded cells pass"
    return "BELOW FLOOR", 1, f"{shown}, at least {100 * floor:g} % asked for"


def _misses(facts: _Facts) -> _Found | None:
    missed, graded = facts.counts.missed, facts.counts.graded
    return ("PASS WITH MISSES", 0, f"{missed} of {graded} graded cells missed") if missed else None


RULES: tuple[Callable[[_Facts], _Found | None], ...] = (
    _stopped_early,
    _unusable,
    _incomplete,
    _below_floor,
    _misses,
)
