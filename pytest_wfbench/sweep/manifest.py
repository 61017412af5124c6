"""A plan as the manifest of its sweep: bindings, definitions, versions and what was selected."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from pytest_wfbench import __version__
from pytest_wfbench.agents.pinned import untested
from pytest_wfbench.clock import stamp
from pytest_wfbench.digests import digest_bytes, digest_value
from pytest_wfbench.evidence.ci import ci_of
from pytest_wfbench.evidence.manifest import (
    Asked,
    BoundFile,
    Candidate,
    PlannedCell,
    Skipped,
    SubjectInfo,
    Sweep,
    TaskBinding,
    Versions,
)
from pytest_wfbench.files import user_path
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.select import required_candidates
from pytest_wfbench.scoring.judge_prompt import PROMPT_VERSION
from pytest_wfbench.sweep.candidate import bases_of, laid_over
from pytest_wfbench.sweep.context import SweepContext
from pytest_wfbench.sweep.plan import Plan, Skip


def describe_sweep(context: SweepContext, started: datetime, cells: Iterable[Cell], head: str | None) -> Sweep:
    """Return the manifest of a sweep that is about to run the given cells."""
    plan = context.plan
    selected = list(cells)
    skipped = {cell.id: skip for cell in selected if (skip := plan.skip(cell))}
    return Sweep(
        sweep_id=context.seat.sweep_id,
        started_at=stamp(started),
        options=Asked.model_validate(plan.options.to_json() | _judge(plan)),
        arms=tuple(dict.fromkeys(arm for arms in plan.arms.values() for arm in arms.chosen)),
        subjects=tuple(_subjects(plan)),
        tasks=tuple(_task(plan, loaded) for loaded in plan.tasks),
        plugin=plan.plugin.binding if plan.plugin else None,
        candidate=_candidate(plan),
        lock=lock(plan),
        versions=_versions(context),
        host=context.host,
        sandbox="host" if plan.options.sandbox == "host" else "bwrap",
        head=head,
        ci=ci_of(os.environ),
        planned=tuple(_planned(cell) for cell in selected if cell.id not in skipped),
        skipped=tuple(_skipped(cell, skipped[cell.id]) for cell in selected if cell.id in skipped),
    )


def _judge(plan: Plan) -> dict[str, str]:
    """Return who judges, also where nobody was named."""
    return {"judge_model": plan.judge.typed} if plan.judge else {}


def lock(plan: Plan) -> dict[str, str]:
    """Return every digest that rows of this sweep depend on, by name."""
    arms = {arm.name: arm for arms in plan.arms.values() for arm in arms.chosen}
    return {
        "tasks": digest_value({f"{t}~{v}": b.task for t, v, b in plan.bindings()}),
        "snapshots": digest_value({task: template.digest for task, template in plan.templates.items()}),
        "arms": digest_value({name: arm.model_dump(mode="json") for name, arm in arms.items()}),
        "subjects": digest_value([str(subject) for subject in plan.subjects]),
        "agents": digest_value({name: runtime.version for name, runtime in plan.runtimes.items()}),
        "effort": plan.options.effort or "none",
        "agent_options": digest_value({s.agent: plan.agent_options(s.agent) for s in plan.subjects}),
        "cell_budget": f"{plan.options.cell_max_cost:g}" if plan.options.cell_max_cost else "none",
        "overlay": plan.overlay_digest or "none",
        "plugin": plan.plugin.digest if plan.plugin else "none",
        "cassettes": digest_value(dict(plan.cassette_digests)),
        "harness": __version__,
        "sandbox": plan.options.sandbox,
        "judge": f"{plan.judge.typed}, {plan.judge.votes} votes, prompt {PROMPT_VERSION}" if plan.judge else "none",
    }


def _subjects(plan: Plan) -> Iterator[SubjectInfo]:
    for subject in plan.subjects:
        runtime = plan.runtimes.get(str(subject))
        yield SubjectInfo(
            subject=str(subject),
            agent=subject.agent,
            model=subject.model,
            agent_version=runtime.version if runtime else None,
            effort=plan.options.effort,
            options=plan.agent_options(subject.agent),
            tested=untested(runtime.version) if runtime else None,
        )


def _task(plan: Plan, loaded: LoadedTask) -> TaskBinding:
    task, template = loaded.task, plan.templates.get(loaded.task.id)
    binding = plan.binding(task.id, 0)
    wordings = range(len(task.variations) + 1)
    return TaskBinding(
        id=task.id,
        kind=task.kind,
        class_=task.class_,
        variations=len(task.variations),
        expensive=task.expensive,
        tags=task.tags,
        ref=task.ref,
        base_commit=template.base_commit if template else None,
        snapshot_commit=template.snapshot_commit if template else None,
        task_digest=binding.task,
        prompts=tuple(plan.binding(task.id, variation).prompt for variation in wordings),
        setup_digest=digest_value(task.setup) if task.setup else None,
        verify_digest=digest_value(task.verify) if task.verify else None,
        oracle_digest=binding.oracle,
        oracle_command_digest=binding.oracle_command,
        oracle_manifest_digest=binding.oracle_manifest,
        files=tuple(_bound(entry.name, entry.data) for entry in loaded.hidden.deciding),
    )


def _bound(name: str, data: bytes) -> BoundFile:
    return BoundFile(path=name, bytes=len(data), sha256=digest_bytes(data))


def _candidate(plan: Plan) -> Candidate | None:
    if not plan.overlay or not plan.overlay_digest:
        return None
    # They are the same in all of them, or there is no sweep.
    trees = laid_over(plan.tasks, plan.arms, plan.templates)
    bases = bases_of(plan.overlay, trees[0]) if trees else {}
    declared: tuple[Arm, ...] = tuple({arm.name: arm for a in plan.arms.values() for arm in a.declared}.values())
    return Candidate(
        overlay_digest=plan.overlay_digest,
        files=tuple(_bound(entry.name, entry.data) for entry in plan.overlay),
        target_base_digests={path: digest_bytes(data) for path, data in bases.items()},
        required_arms=required_candidates(declared, plan.overlay),
        mirrors=tuple(dict.fromkeys(mirror for arms in plan.arms.values() for mirror in arms.mirrors)),
    )


def _versions(context: SweepContext) -> Versions:
    plan = context.plan
    return Versions(
        harness=__version__,
        litellm=importlib.metadata.version("litellm"),
        price_table=context.prices.label,
        agents={s.agent: plan.runtimes[str(s)].version for s in plan.subjects if str(s) in plan.runtimes},
    )


def _planned(cell: Cell) -> PlannedCell:
    return PlannedCell(
        cell_id=cell.id,
        task=cell.task.id,
        variation=cell.variation,
        arm=cell.arm.name,
        subject=str(cell.subject),
        run=cell.run,
    )


def _skipped(cell: Cell, skip: Skip) -> Skipped:
    return Skipped(kind=skip.kind, task=cell.task.id, cell_id=cell.id, reason=skip.reason)


def results_parent(plan: Plan) -> Path:
    """Return the directory in which sweeps have theirs."""
    return user_path(plan.options.results, plan.directory)
