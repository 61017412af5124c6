"""The procedure of one cell, top to bottom."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pytest_wfbench.cell.artifacts import Artifacts, keep_artifacts
from pytest_wfbench.cell.assemble import CellRecord, build_row
from pytest_wfbench.cell.changes import Unreadable, changes_of
from pytest_wfbench.cell.question import Grade, Grader, asked_usage
from pytest_wfbench.cell.review import Desk, Review, open_desk
from pytest_wfbench.cell.sessions import Fault, SessionEnd, SessionRunner
from pytest_wfbench.cell.trouble import attempt
from pytest_wfbench.clock import now
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.gateway.api import GatewayClient
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sandbox.spec import Command, Finished, Sandbox
from pytest_wfbench.scoring.judge import Judge
from pytest_wfbench.scoring.oracle import Oracle, OracleResult
from pytest_wfbench.space import because, is_full, require_room
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
    judge: Judge | None = None,
    attempt_number: int = 1,
) -> Row:
    """Run the arm's sessions, then ``verify``, then the oracle, and return the row; or grade an answer, or a review.

    A session that is no evidence (unusable) is never verified or judged; a session that is a miss of its own is, since
    its numbers were paid for. Where nothing was changed there is nothing to verify. ``opening`` is what it took to open
    the workspace, in seconds.

    Raises:
        one of ``TROUBLE``: before the first session had ended; later trouble is in the row, with what was paid for.
    """
    began, started_at = time.monotonic(), now()
    grader = Grader(cell, workspace, sandbox, gateway, judge)
    desk = open_desk(sweep.plan.loaded(cell.task.id), workspace, sandbox) if cell.task.kind == "review" else None
    course = Course(cell, workspace, sandbox, oracle, sweep, grader, attempt_number, desk)
    wishes = (sweep.plan.options.effort, sweep.plan.agent_options(cell.subject.agent))
    plugin = sweep.plan.plugin_of(cell.arm)
    runner = SessionRunner(cell, workspace, sandbox, gateway, agent, *wishes, plugin, desk.stage if desk else None)
    trouble = tuple(error for error in (attempt(lambda: course.run(runner)), attempt(course.keep)) if error)
    if trouble and not course.sessions:
        raise trouble[0]
    for error in trouble:
        if isinstance(error, OSError) and is_full(error):
            sweep.guard.halt(because(error, sweep.results if course.artifacts is None else sweep.seat.scratch))
    record = CellRecord(
        cell=cell,
        agent=agent,
        sessions=tuple(course.sessions),
        change=course.change,
        unreadable=course.unreadable,
        verify=course.verify,
        oracle=course.verdict,
        workspace=workspace,
        opening=opening,
        sandbox=sandbox.name,
        started_at=started_at,
        seconds=time.monotonic() - began,
        artifacts=course.artifacts,
        trouble=trouble,
        cut=course.cut,
        grade=course.grade,
        review=course.review,
        attempt=attempt_number,
    )
    return build_row(record, sweep)


@dataclass
class Course:
    """How far a cell came. What was paid for is in its row whatever becomes of the rest."""

    cell: Cell
    workspace: Workspace
    sandbox: Sandbox
    oracle: Oracle
    sweep: SweepContext
    grader: Grader
    attempt: int = 1
    desk: Desk | None = None
    sessions: list[SessionEnd] = field(default_factory=list)
    cut: bool = True
    change: Change | None = None
    unreadable: str | None = None
    verify: Finished | None = None
    verdict: OracleResult | None = None
    grade: Grade | None = None
    review: Review | None = None
    artifacts: Artifacts | None = None

    def run(self, runner: SessionRunner) -> None:
        """Run sessions, then what tells what they are worth. Raises any of ``TROUBLE``."""
        require_room(self.sweep.seat.scratch)
        for end in runner.run_all():
            self.sessions.append(end)
            if end.usage.sweep_spent:
                self.sweep.guard.halt(end.usage.sweep_spent, "budget")
        self.cut = False
        require_room(self.sweep.seat.scratch)
        {"question": self._grade, "review": self._score}.get(self.cell.task.kind, self._prove)()

    def _grade(self) -> None:
        """Grade what was answered; what was changed is not looked at, and a session at fault is never judged."""
        if not any(end.fault for end in self.sessions):
            self.grade = self.grader.grade(self.sessions)
            if spent := asked_usage(self.grade.judged).sweep_spent:
                self.sweep.guard.halt(spent, "budget")

    def _score(self) -> None:
        """Score what was reviewed, which a session that is a miss of its own may have done too."""
        faults = [end.fault for end in self.sessions if end.fault]
        if self.desk is not None and all(map(_is_judged, faults)):
            self.review = self.desk.score(whole=not faults)

    def _prove(self) -> None:
        """Prove what was made: by verify and oracle, where anything was changed."""
        self.change, self.unreadable = look(self.workspace, self.sandbox, self.cell)
        if self.change and self.change.something and all(_is_judged(end.fault) for end in self.sessions):
            self.verify = run_verify(self.cell, self.workspace, self.sandbox)
            self.verdict = self.oracle.judge(self.workspace.check_mounts())

    def keep(self) -> None:
        """Write the artifacts of what there is. Raises OSError."""
        if self.sessions:
            self.artifacts = keep_artifacts(
                self.cell, self.sessions, self.change, self.sweep, self.attempt, self.review
            )


def _is_judged(fault: Fault | None) -> bool:
    return fault is None or fault.outcome == "miss"


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
