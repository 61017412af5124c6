"""The doors of a sweep's rooms, opened for one process or one cell."""

from __future__ import annotations

from pytest_wfbench.gateway.api import GatewayClient
from pytest_wfbench.gateway.patient import PatientGateway
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sandbox.choice import make_sandbox
from pytest_wfbench.sandbox.identity import choose_identity, shelves
from pytest_wfbench.sandbox.spec import Sandbox
from pytest_wfbench.sweep.context import SweepContext, bounds_of
from pytest_wfbench.workspace.ground import survey
from pytest_wfbench.workspace.overlay import Workspace
from pytest_wfbench.workspace.startstate import make_start


def open_sandbox(sweep: SweepContext) -> Sandbox:
    """Return the sandbox the sweep asked for. Raises BubblewrapMissing."""
    return make_sandbox(sweep.plan.options.sandbox)


def connect_gateway(sweep: SweepContext) -> GatewayClient | None:
    """Return the control side of the sweep's gateway, or none where it has none."""
    return PatientGateway(sweep.seat.gateway, sweep.guard.cause) if sweep.seat.gateway else None


def sandbox_owner() -> tuple[int, int]:
    """Return the uid and gid of sandboxed processes."""
    identity = choose_identity()
    return identity.uid, identity.gid


def open_cell_workspace(cell: Cell, sandbox: Sandbox, sweep: SweepContext) -> Workspace:
    """Return a cell's workspace over the start state of its task and arm, which the runs of an arm share.

    It is a copy where the sandbox cannot mount overlays.

    Raises:
        SetupFailed: when the task's ``setup`` fails.
        CopyFailed: when it cannot be copied.
    """
    identity = choose_identity()
    ground = survey(sandbox, sweep.seat.scratch, identity)
    start = make_start(
        sweep.plan.templates[cell.task.id],
        setup=cell.task.setup,
        patch=patch.data if (patch := sweep.plan.loaded(cell.task.id).hidden.patch) else None,
        overlay_files=sweep.plan.overlay_of(cell.arm),
        timeout=cell.task.timeout.setup,
        bounds=bounds_of(cell.task.limits),
        sandbox=sandbox,
        identity=identity,
        cache=shelves(identity, sandbox.name),
        copies=ground.copies,
    )
    return ground.open(start)
