"""What the gate would say of candidates that are the incumbent, and of some that are known to be better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Block
from pytest_wfbench.evidence.store import Rows, Run
from pytest_wfbench.matrix.task import TaskKind
from pytest_wfbench.promotion.policies import POLICIES
from pytest_wfbench.promotion.rules import Comparison, Policy, policy_options
from pytest_wfbench.promotion.simulate import SEED, Shift, better, cheaper, promoted
from pytest_wfbench.statistics.paired import pair_up
from pytest_wfbench.statistics.uncertain import Bounds, Unit

LEVEL = 0.95
SIMS = 1000
PERCENTS = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0)
POINTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


class Rate(Block):
    """How often a candidate of one true ``effect`` is promoted: percent of its metric less, or points of F1 more."""

    effect: float
    promoted: int
    sims: int
    rate: float
    interval: Bounds


class Power(Block):
    """One policy over one arm's runs: ``false_promotion`` has the effect 0.

    ``ruled`` is the share of simulated sweeps with effect 0 on which the gate could rule at all.
    """

    policy: str
    metric: str
    unit: Unit
    arm: str
    subject: str
    tasks: int
    runs: int
    ruled: float
    false_promotion: Rate
    curve: tuple[Rate, ...]


class PowerReport(Block):
    """All of a results directory; ``missing`` says of which policy it holds no runs. Deterministic for its seed."""

    schema_version: int = 1
    sims: int
    seed: int
    powers: tuple[Power, ...]
    missing: tuple[str, ...]


def power_of(rows: Rows, sweep: Sweep, sims: int = SIMS) -> PowerReport:
    """Simulate ``sims`` sweeps for each policy, incumbent, subject and effect size from the rows."""
    powers = tuple(_powers(rows.runs, sweep, sims))
    absent = sorted({policy.name for policy in POLICIES.values()} - {power.policy for power in powers})
    missing = tuple(f"No {name} task has a valid run here, so nothing is said of that policy." for name in absent)
    return PowerReport(sims=sims, seed=SEED, powers=powers, missing=missing)


def _powers(runs: tuple[Run, ...], sweep: Sweep, sims: int) -> Iterator[Power]:
    incumbents = {arm.candidate_of for arm in sweep.arms if arm.candidate_of}
    graded = [run for run in runs if run.row.outcome in ("pass", "miss")]
    held = sorted({(run.row.task_kind, run.row.arm, run.row.subject) for run in graded})
    known = [entry for entry in held if entry[1] in incumbents] or held
    for kind, arm, subject in known:
        if policy := POLICIES.get(kind):
            yield _power(policy, _comparison(graded, sweep, kind, arm, subject), subject, sims)


def _comparison(runs: list[Run], sweep: Sweep, kind: TaskKind, arm: str, subject: str) -> Comparison:
    """An arm against itself."""
    units = {run.key[:2] for run in runs if (run.row.task_kind, run.row.arm, run.row.subject) == (kind, arm, subject)}
    return Comparison(arm, arm, pair_up(units, runs, arm, arm, subject), policy_options(sweep.options))


def _power(policy: Policy, comparison: Comparison, subject: str, sims: int) -> Power:
    metric = policy.metric(comparison.options)
    unit: Unit = "weighted_f1" if policy.more_is_better else "percent"
    none, ruled = _rate(policy, comparison, 0.0, None, sims)
    return Power(
        policy=policy.name,
        metric=metric,
        unit=unit,
        arm=comparison.incumbent,
        subject=subject,
        tasks=len(comparison.pairs),
        runs=sum(len(pair.incumbent.valid) for pair in comparison.pairs),
        ruled=ruled,
        false_promotion=none,
        curve=tuple(_rate(policy, comparison, size, shift, sims)[0] for size, shift in _shifts(unit, metric)),
    )


def _shifts(unit: Unit, metric: str) -> Iterator[tuple[float, Shift]]:
    for size in EFFECTS[unit]:
        yield size, better(size) if unit == "weighted_f1" else cheaper(metric, size / 100)


EFFECTS: Mapping[Unit, tuple[float, ...]] = MappingProxyType({"percent": PERCENTS, "weighted_f1": POINTS})


def _rate(policy: Policy, comparison: Comparison, effect: float, shift: Shift | None, sims: int) -> tuple[Rate, float]:
    from pytest_wfbench.statistics.inference import Interval, share_interval

    found = promoted(policy, comparison, sims, shift)
    interval = share_interval(found.promoted, sims, LEVEL) or Interval(0.0, 1.0, LEVEL)
    bounds = Bounds(low=interval.low, high=interval.high, level=LEVEL)
    rate = Rate(effect=effect, promoted=found.promoted, sims=sims, rate=found.promoted / sims, interval=bounds)
    return rate, found.ruled / sims
