"""Whether rows are of the tasks, candidates and plugin that their manifest binds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_wfbench.evidence.manifest import Sweep, TaskBinding
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows


def unbound(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield a sentence for each binding of the manifest that rows do not have, with how many do not."""
    tasks = {task.id: task for task in sweep.tasks}
    planned = {cell.cell_id for cell in sweep.planned}
    faults = Counter(told for row in rows.rows for told in _faults(row, sweep, tasks.get(row.task), planned))
    for told, number in sorted(faults.items()):
        yield f"{told}: {number} of {len(rows.rows)} rows."


def _faults(row: Row, sweep: Sweep, task: TaskBinding | None, planned: set[str]) -> Iterator[str]:
    if row.cell_id not in planned:
        yield "A cell that the sweep did not plan"
    if task is None:
        yield f"A task that the sweep does not bind, {row.task}"
        return
    for name, has, wanted in _pairs(row, task):
        if has != wanted:
            yield f"{row.task}: {name} is not the bound one"
    arm, candidate = sweep.arm(row.arm), sweep.candidate
    if arm is not None and arm.overlay and row.overlay_digest != (candidate.overlay_digest if candidate else None):
        yield f"{row.arm}: the overlay is not the bound one"
    if arm is not None and arm.plugin and row.plugin != sweep.plugin:
        yield f"{row.arm}: the plugin is not the bound one"


def _pairs(row: Row, task: TaskBinding) -> Iterator[tuple[str, str | None, str | None]]:
    wording = task.prompts[row.variation] if row.variation < len(task.prompts) else None
    yield "the prompt", row.prompt_digest, wording
    yield "the oracle", row.oracle_digest, task.oracle_digest
    yield "the oracle's command", row.oracle_command_digest, task.oracle_command_digest
    yield "the oracle's manifest", row.oracle_manifest_digest, task.oracle_manifest_digest
    yield "the snapshot", row.snapshot_commit, task.snapshot_commit
    yield "the base commit", row.base_commit, task.base_commit
    if row.variation == 0:
        yield "the task", row.task_digest, task.task_digest
