"""Whether cells were kept apart, judged by what they were to be judged by, and left their transcripts, in sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.words import plural

NAMED = 3


def contamination(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield an alarm for each task on which cells of several arms left the very same change: did one see another's?"""
    found: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.rows:
        if row.churn_fingerprint and row.churn and row.churn.files:
            found[_unit(row), row.subject][row.churn_fingerprint].append(row)
    for (unit, subject), changes in sorted(found.items()):
        for _, same in sorted(changes.items()):
            arms = sorted({row.arm for row in same})
            if len(arms) > 1:
                told = f"{plural(len(same), 'attempt')} of {', '.join(arms)} at {unit} ({subject})"
                yield f"Contamination alarm: {told} left the very same change. See that none could read another's."


def _unit(row: Row) -> str:
    return f"{row.task}~v{row.variation}" if row.variation else row.task


def oracles(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield a sentence where rows were judged by other hidden files than those the sweep is bound to."""
    bound = {task.id: (task.oracle_digest, task.oracle_command_digest) for task in sweep.tasks}
    other = sorted(
        {
            row.task
            for row in rows.rows
            if row.oracle_digest and (row.oracle_digest, row.oracle_command_digest) != bound.get(row.task)
        }
    )
    if other:
        yield f"{plural(len(other), 'task')} judged by another oracle than the sweep's: {', '.join(other[:NAMED])}."


def transcripts(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield a sentence where attempts left no transcript."""
    ran = [row for row in rows.rows if row.outcome != "skipped"]
    if missing := sum(row.transcript_digest is None for row in ran):
        yield f"{missing} of {plural(len(ran), 'attempt')} left no transcript."


def boundaries(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield a sentence where some rows of a sweep with a sandbox had none."""
    if sweep.sandbox != "host" and (bare := sum(row.sandbox == "host" for row in rows.rows)):
        yield f"{plural(bare, 'row')} of attempts without a sandbox: nothing can be promoted on them."
