"""What each arm saves against another: the median over tasks of the per-task improvement in percent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.store import Run
from pytest_wfbench.statistics.aggregate import (
    Measure,
    churn_lines,
    cost_usd,
    duration_s,
    num_turns,
    output_tokens,
    tokens_cached,
    tokens_in,
)  # fmt: skip
from pytest_wfbench.statistics.paired import median_improvement, pair_up

BASELINE = "baseline"
MEASURES: Mapping[str, Measure] = MappingProxyType({
    "tokens_in": tokens_in, "tokens_cached": tokens_cached, "tokens_out": output_tokens, "cost_usd": cost_usd,
    "wall": duration_s, "turns": num_turns, "churn": churn_lines,
})  # fmt: skip


@dataclass(frozen=True)
class Savings:
    """An arm against another on the tasks both ran: resolved and valid runs of each, and percents by measure.

    Positive percents are savings; a percent is none where a valid run of either leaves it unknown.
    """

    subject: str
    arm: str
    against: str
    tasks: int
    resolved: int
    valid: int
    resolved_against: int
    valid_against: int
    percents: Mapping[str, float | None]


def references(arm: str, sweep: Sweep) -> tuple[str, ...]:
    """Return what an arm is compared with: its incumbent first, then the baseline."""
    defined = sweep.arm(arm)
    wanted = (defined.candidate_of if defined else None, BASELINE)
    return tuple(dict.fromkeys(name for name in wanted if name and name != arm))


def all_savings(runs: Sequence[Run], sweep: Sweep) -> tuple[Savings, ...]:
    """Return every arm against the baseline and every candidate against its incumbent, per subject."""
    return tuple(entry for entry in _all(runs, sweep) if entry.tasks)


def _all(runs: Sequence[Run], sweep: Sweep) -> Iterator[Savings]:
    for subject in sorted({run.row.subject for run in runs}):
        of = [run for run in runs if run.row.subject == subject]
        arms = {run.row.arm for run in of}
        for arm in sorted(arms):
            for against in references(arm, sweep):
                if against in arms:
                    yield _savings(of, subject, arm, against)


def _savings(runs: Sequence[Run], subject: str, arm: str, against: str) -> Savings:
    units = {name: {run.key[:2] for run in runs if run.row.arm == name} for name in (arm, against)}
    pairs = pair_up(units[arm] & units[against], runs, against, arm, subject)
    return Savings(
        subject=subject,
        arm=arm,
        against=against,
        tasks=len(pairs),
        resolved=sum(pair.candidate.resolved for pair in pairs),
        valid=sum(len(pair.candidate.valid) for pair in pairs),
        resolved_against=sum(pair.incumbent.resolved for pair in pairs),
        valid_against=sum(len(pair.incumbent.valid) for pair in pairs),
        percents=MappingProxyType({name: median_improvement(pairs, measure) for name, measure in MEASURES.items()}),
    )
