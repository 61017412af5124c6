"""From rows and manifest to decisions. The same directory always gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from pytest_wfbench.evidence.manifest import DependencyBinding, Sweep, TaskBinding
from pytest_wfbench.evidence.store import Rows, Run
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.task import TaskKind
from pytest_wfbench.promotion.model import ArmPolicy, Decision, Promotion, SideNumbers, TaskNumbers
from pytest_wfbench.promotion.policies import POLICIES
from pytest_wfbench.promotion.rules import Comparison, Decided, Policy, Ruling, policy_options
from pytest_wfbench.promotion.uncertainty import uncertainty_of
from pytest_wfbench.statistics.aggregate import Measure
from pytest_wfbench.statistics.paired import Pair, Side, pair_up

EVIDENCE_LIFE = timedelta(days=90)
WORST_FIRST: tuple[Decided, ...] = ("insufficient_evidence", "keep_incumbent", "promote")

Unit = tuple[str, int]


def decide(rows: Rows, sweep: Sweep, *, uncertain: bool = True) -> Promotion:
    """Return the decisions of a results directory, one per candidate arm, subject and kind of task.

    How sure they are takes a moment and scipy; without ``uncertain`` it is left out, and the decisions are the same.
    """
    runs = rows.runs
    candidates = sorted((arm for arm in sweep.arms if arm.candidate_of), key=lambda arm: arm.name)
    faults = tuple(_faults(rows, sweep))
    decisions = [decision for arm in candidates for decision in _decide_arm(arm, runs, sweep, faults, uncertain)]
    required = tuple(sorted(sweep.candidate.required_arms)) if sweep.candidate else ()
    decisions += [_never_run(name, faults) for name in required if name not in {d.candidate_arm for d in decisions}]
    return _promotion(sweep, tuple(decisions), required)


def overall(decisions: Iterable[Decision]) -> Decided:
    """Return the overlay's decision: the worst of all, and insufficient where there is none."""
    found = {decision.decision for decision in decisions}
    return next((word for word in WORST_FIRST if word in found), "insufficient_evidence")


def _faults(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Why the sweep as a whole is no evidence, whatever its rows say."""
    present = {row.cell_id for row in rows.rows}
    planned = {cell.cell_id for cell in sweep.planned}
    if sweep.run_status != "complete":
        yield f"The sweep is {sweep.run_status}, {len(present & planned)} of {len(planned)} cells have a result."
    if sweep.stop:
        yield f"The sweep was stopped ({sweep.stop.kind}) after {len(present)} of {len(planned)} cells."
    if absent := planned - present - sweep.skipped_ids:
        yield f"{len(absent)} of {len(planned)} planned cells have no result."
    if sweep.missing_shards:
        yield f"{len(sweep.missing_shards)} shards never reported: {', '.join(sweep.missing_shards)}."
    if sweep.shard != "1/1":
        yield f"This is shard {sweep.shard} of a sweep: merge all of them first."
    if rows.torn:
        yield f"1 row is torn: {rows.torn}."
    if rows.duplicates:
        yield f"{len(rows.duplicates)} attempts are there twice: {', '.join(rows.duplicates[:3])}."
    if sweep.sandbox != "bwrap":
        yield f"The sweep ran in the sandbox {sweep.sandbox}, 0 of its rows are promotable."


def _decide_arm(
    arm: Arm, runs: tuple[Run, ...], sweep: Sweep, faults: tuple[str, ...], uncertain: bool
) -> Iterator[Decision]:
    incumbent = arm.candidate_of or ""
    units = _units(runs, sweep, frozenset({arm.name, incumbent}))
    for kind in sorted(units, key=str):
        for subject in sorted({info.subject for info in sweep.subjects} | {run.row.subject for run in runs}):
            pairs = pair_up(units[kind], runs, incumbent, arm.name, subject)
            comparison = Comparison(incumbent, arm.name, pairs, policy_options(sweep.options))
            yield _decision(comparison, kind, subject, faults, uncertain)


def _units(runs: tuple[Run, ...], sweep: Sweep, arms: frozenset[str]) -> dict[TaskKind, set[Unit]]:
    """Tasks that either arm was to run or did run, by kind; one that an arm lacks is here, and found wanting later."""
    kinds: dict[str, TaskKind] = {task.id: task.kind for task in sweep.tasks}
    kinds |= {run.row.task: run.row.task_kind for run in runs}
    cells = [(cell.task, cell.variation, cell.arm) for cell in sweep.planned] + [run.key[:3] for run in runs]
    found: dict[TaskKind, set[Unit]] = {}
    for task, variation, arm in cells:
        if arm in arms and task in kinds:
            found.setdefault(kinds[task], set()).add((task, variation))
    return found


def _decision(
    comparison: Comparison, kind: TaskKind, subject: str, faults: tuple[str, ...], uncertain: bool
) -> Decision:
    policy = POLICIES.get(kind)
    if policy is None:
        reason = f"There is no policy for {kind} tasks, {len(comparison.pairs)} of them were run."
        return _insufficient(comparison.candidate, comparison.incumbent, subject, (*faults, reason))
    ruling = _with_faults(policy.rule(comparison), faults)
    measure = policy.measure(comparison.options)
    return Decision(
        incumbent_arm=comparison.incumbent,
        candidate_arm=comparison.candidate,
        subject=subject,
        policy=policy.name,
        decision=ruling.decision,
        metric=policy.metric(comparison.options),
        reasons=ruling.reasons,
        tasks=tuple(_task(pair, pair.name in ruling.gated, measure, policy) for pair in comparison.pairs),
        gated_tasks=ruling.gated,
        ungated_tasks=ruling.ungated,
        uncertainty=uncertainty_of(policy, comparison) if uncertain and comparison.pairs else None,
    )


def _with_faults(ruling: Ruling, faults: tuple[str, ...]) -> Ruling:
    if not faults:
        return ruling
    also = ruling.reasons if ruling.decision == "insufficient_evidence" else ()
    return Ruling("insufficient_evidence", (*faults, *also), ruling.gated, ruling.ungated)


def _task(pair: Pair, gated: bool, measure: Measure, policy: Policy) -> TaskNumbers:
    before, after = _side(pair.incumbent, measure), _side(pair.candidate, measure)
    known = before.metric is not None and after.metric is not None
    return TaskNumbers(
        task=pair.task,
        variation=pair.variation,
        gated=gated,
        incumbent=before,
        candidate=after,
        improvement_pct=None if policy.more_is_better else pair.improvement(measure),
        gain=(after.metric or 0.0) - (before.metric or 0.0) if policy.more_is_better and known else None,
    )


def _side(side: Side, measure: Measure) -> SideNumbers:
    return SideNumbers(runs=len(side.runs), valid=len(side.valid), resolved=side.resolved, metric=side.median(measure))


def _insufficient(candidate: str, incumbent: str | None, subject: str | None, reasons: tuple[str, ...]) -> Decision:
    return Decision(
        incumbent_arm=incumbent,
        candidate_arm=candidate,
        subject=subject,
        policy=None,
        decision="insufficient_evidence",
        metric=None,
        reasons=reasons,
    )


def _never_run(arm: str, faults: tuple[str, ...]) -> Decision:
    return _insufficient(
        arm,
        None,
        None,
        (
            *faults,
            f"The overlay needs {arm}, of which 0 cells were run.",
        ),
    )


def _promotion(sweep: Sweep, decisions: tuple[Decision, ...], required: tuple[str, ...]) -> Promotion:
    generated = sweep.ended_at or sweep.started_at
    subjects = tuple(sorted({info.subject for info in sweep.subjects}))
    candidate, options = sweep.candidate, policy_options(sweep.options)
    mounted = {(d.source, d.target, d.digest): d for task in sweep.tasks for d in task.dependencies}
    dependencies: tuple[DependencyBinding, ...] = tuple(mounted[key] for key in sorted(mounted))
    return Promotion(
        generated_at=generated,
        evidence_expires_at=_expiry(generated),
        run_status=sweep.run_status,
        decision=overall(decisions),
        subject=subjects[0] if len(subjects) == 1 else None,
        subjects=subjects,
        proposer_model=candidate.proposer_model if candidate else None,
        candidate_origin=candidate.origin if candidate else None,
        candidate_overlay_digest=candidate.overlay_digest if candidate else None,
        target_base_digests=candidate.target_base_digests if candidate else {},
        required_candidate_arms=required,
        selected_tasks=tuple(sorted(_run_tasks(sweep), key=lambda task: task.id)),
        dependencies=dependencies,
        plugin=sweep.plugin,
        policy={d.candidate_arm: ArmPolicy(policy=d.policy, options=options) for d in decisions if d.policy},
        decisions=decisions,
    )


def _run_tasks(sweep: Sweep) -> Iterator[TaskBinding]:
    """Yield the tasks of which cells were to be run; one that was skipped whole is no part of the evidence."""
    planned = {cell.task for cell in sweep.planned}
    return (task for task in sweep.tasks if task.id in planned)


def _expiry(generated: str) -> str | None:
    try:
        end = datetime.fromisoformat(generated) + EVIDENCE_LIFE
    except (ValueError, OverflowError):
        return None
    return end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
