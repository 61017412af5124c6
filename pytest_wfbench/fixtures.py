"""The fixtures of a cell: thin doors to the rooms below. A ``conftest.py`` may override any of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.gateway.api import GatewayClient
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sandbox.spec import Sandbox
from pytest_wfbench.scoring.judge import Judge
from pytest_wfbench.scoring.oracle import Oracle
from pytest_wfbench.stash import OPENING, SWEEP
from pytest_wfbench.sweep.context import BoundAgent, SweepContext, bounds_of
from pytest_wfbench.sweep.rooms import connect_gateway, open_cell_workspace, open_sandbox, sandbox_owner
from pytest_wfbench.workspace.overlay import Workspace


@pytest.fixture(scope="session")
def wfbench_sweep(pytestconfig: pytest.Config) -> SweepContext:
    """The sweep: its plan, its results directory, its prices."""
    return pytestconfig.stash[SWEEP]


@pytest.fixture(scope="session")
def sandbox(wfbench_sweep: SweepContext) -> Sandbox:
    """What runs every command of a cell: bubblewrap, or with ``--wfbench-sandbox=host`` no boundary at all."""
    return open_sandbox(wfbench_sweep)


@pytest.fixture(scope="session")
def gateway(wfbench_sweep: SweepContext) -> GatewayClient | None:
    """The control side of the gateway; none where no subject has a model."""
    return connect_gateway(wfbench_sweep)


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The cell: task, variation, arm, subject and run."""
    value: Cell = request.param
    return value


@pytest.fixture
def agent(cell: Cell, wfbench_sweep: SweepContext) -> BoundAgent:
    """The subject's agent, as it was found before the sweep began."""
    runtime = wfbench_sweep.plan.runtimes[str(cell.subject)]
    return BoundAgent(get_agent(cell.subject.agent), runtime, cell.subject)


@pytest.fixture
def workspace(
    request: pytest.FixtureRequest, cell: Cell, sandbox: Sandbox, wfbench_sweep: SweepContext
) -> Iterator[Workspace]:
    """The cell's private clone of the task's start state. Removed afterwards."""
    began = time.monotonic()
    opened = open_cell_workspace(cell, sandbox, wfbench_sweep)
    request.node.stash[OPENING] = time.monotonic() - began
    yield opened
    opened.remove()


@pytest.fixture(scope="session")
def judge(wfbench_sweep: SweepContext) -> Judge | None:
    """The judge of answers to questions with a rubric; none where nobody is named."""
    route = wfbench_sweep.plan.judge
    return Judge(route.model, route.wire, route.votes) if route else None


@pytest.fixture
def oracle(cell: Cell, sandbox: Sandbox, wfbench_sweep: SweepContext) -> Oracle | None:
    """The task's oracle, captured before the first cell; none for a task without one."""
    spec = cell.task.oracle
    if spec is None:
        return None
    return Oracle(
        spec=spec,
        hidden=wfbench_sweep.plan.loaded(cell.task.id).hidden,
        sandbox=sandbox,
        scratch=wfbench_sweep.seat.scratch,
        owner=sandbox_owner(),
        timeout=cell.task.timeout.oracle,
        bounds=bounds_of(cell.task.limits),
    )
