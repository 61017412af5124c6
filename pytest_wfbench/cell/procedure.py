"""The procedure of one cell, top to bottom."""

from __future__ import annotations

import time

from pytest_wfbench.cell.artifacts import keep_artifacts
from pytest_wfbench.cell.assemble import CellRecord, build_row
from pytest_wfbench.cell.changes import Unreadable, changes_of
from pytest_wfbench.cell.sessions import SessionRunner
from pytest_wfbench.clock import now
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.gateway.api import GatewayClient
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sandbox.spec import Command, Finished, Sandbox
from pytest_wfbench.scoring.oracle import Oracle
from pytest_wfbench.sweep.context import BoundAgent, SweepContext, bounds_of
from pytest_wfbench.workspace.churn import Change
from pytest_wfbench.workspace.overlay import Workspace


def run_cell(
    cell: Cell,
    workspace: Workspace,
    sandbox: Sandbox,
    gateway: GatewayClient,
    agent: BoundAgent,
    oracle: Oracle,
    sweep: SweepContext,
    opening: float = 0.0,
) -> Row:
    """Run the arm's sessions, then ``verify``, then the oracle, and return the row.

    A session that is no evidence (unusable) is never verified or judged; a session that is a miss of its own is, since
    its numbers were paid for. Where nothing was changed there is nothing to verify. ``opening`` is what it took to open
    the workspace, in seconds.
    """
    began, started_at = time.monotonic(), now()
    runner = SessionRunner(cell, workspace, sandbox, gateway, agent, sweep.plan.options.effort)
    sessions = tuple(runner.run_all())
    change, unreadable = look(workspace, sandbox, cell)
    verify = verdict = None
    if change and change.something and all(end.fault is None or end.fault.outcome == "miss" for end in sessions):
        verify = run_verify(cell, workspace, sandbox)
        verdict = oracle.judge(workspace.check_mounts())
    record = CellRecord(
        cell=cell,
        agent=agent,
        sessions=sessions,
        change=change,
        unreadable=unreadable,
        verify=verify,
        oracle=verdict,
        workspace=workspace,
        opening=opening,
        sandbox=sandbox.name,
        started_at=started_at,
        seconds=time.monotonic() - began,
        artifacts=keep_artifacts(cell, sessions, change, sweep),
    )
    return build_row(record, sweep)


def look(workspace: Workspace, sandbox: Sandbox, cell: Cell) -> tuple[Change | None, str | None]:
    """Return what the agent changed, or none and why it cannot be told."""
    try:
        return changes_of(workspace, sandbox, cell.arm.plan_globs), None
    except Unreadable as error:
        return None, str(error)


def run_verify(cell: Cell, workspace: Workspace, sandbox: Sandbox) -> Finished:
    """Run the task's visible check over a throw-away copy of what the agent left."""
    return sandbox.run(
        Command(
            argv=("/bin/sh", "-c", cell.task.verify or "true"),
            mounts=workspace.check_mounts(),
            timeout=cell.task.timeout.verify,
            bounds=bounds_of(cell.task.limits),
        )
    )
