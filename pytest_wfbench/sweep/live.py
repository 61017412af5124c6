"""A running sweep, as its controller sees it: begun once, rows written as they come, sealed whatever happens."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from pytest_wfbench.agents.trial import agent_checks
from pytest_wfbench.baselines.store import StoreError
from pytest_wfbench.clock import now, stamp
from pytest_wfbench.evidence.baseline import write_baseline
from pytest_wfbench.evidence.candidate import write_candidate
from pytest_wfbench.evidence.manifest import OpenCall, PlannedCell, SkipKind, Skipped, Stop, Sweep
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import EvidenceError, RowWriter, write_sweep
from pytest_wfbench.gateway.api import GatewayLost, GatewayRefused
from pytest_wfbench.gateway.client import Gateway
from pytest_wfbench.gateway.control import Books
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sandbox.choice import make_sandbox
from pytest_wfbench.sandbox.identity import Identity, choose_identity
from pytest_wfbench.sandbox.preflight import obstacle
from pytest_wfbench.space import Reserve, because, is_full
from pytest_wfbench.sweep.compared import baseline_for, branch_for
from pytest_wfbench.sweep.context import Seat, SweepContext, take_seat
from pytest_wfbench.sweep.gateway import SweepGateway
from pytest_wfbench.sweep.head import head_commit
from pytest_wfbench.sweep.manifest import describe_sweep, results_parent
from pytest_wfbench.sweep.outage import Halt
from pytest_wfbench.sweep.plan import Plan, sandbox_name
from pytest_wfbench.sweep.preflight import dead_models, probes
from pytest_wfbench.sweep.recording import fill_gaps
from pytest_wfbench.sweep.scratch import scratch_directory
from pytest_wfbench.sweep.snapshot import MachineUnfit, capitalised

USAGE = "usage.jsonl"
# Beyond the manifest's own size: the last row, and the derived files.
ASIDE = 1 << 20
LATEST = "latest"
CAUSE = 600


class SweepFailed(Exception):
    """The sweep cannot start, or cannot go on. The message is one line and names the remedy where there is one."""


class LiveSweep:
    """One sweep, from the proven plan to the sealed manifest. Everything it opens it closes in ``close``."""

    def __init__(self, plan: Plan, gateway: bool) -> None:
        """Take directories and, if ``gateway``, start it; nothing is written yet."""
        self._stack = ExitStack()
        self._started: datetime = now()
        self._gateway: SweepGateway | None = None
        self._sweep: Sweep | None = None
        self._writer: RowWriter | None = None
        self._stop: Stop | None = None
        self._written: set[str] = set()
        self._cut_short = False
        try:
            seat = self._take_places(plan, choose_identity())
            take_seat(seat).guard.prepare()
            if gateway:
                self._gateway = self._stack.enter_context(SweepGateway(plan, self._give_up))
                seat = seat.model_copy(update={"gateway": self._gateway.address})
        except BaseException:
            self._stack.close()
            raise
        self.context: SweepContext = take_seat(seat)
        self._reserve = Reserve(seat.results)

    def _take_places(self, plan: Plan, identity: Identity) -> Seat:
        sweep_id = f"{self._started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        scratch = self._stack.enter_context(scratch_directory(identity))
        runtime = scratch / "sweep"
        runtime.mkdir(mode=0o700)
        return Seat(
            plan=plan,
            sweep_id=sweep_id,
            results=results_parent(plan) / f"wfbench-{sweep_id}",
            runtime=runtime,
            scratch=scratch,
            gateway=None,
        )

    @property
    def begun(self) -> bool:
        """Whether there is a results directory."""
        return self._sweep is not None

    def begin(self, cells: Sequence[Cell], opened: Callable[[], None]) -> None:
        """Make the results directory, write the manifest, and prove the gateway. Asked again, it does nothing.

        ``opened`` is called once the directory can be read, before anything is proven: that may take minutes.

        Raises:
            SweepFailed: when the gateway does not come up, or its self-test event does not arrive whole.
        """
        if self._sweep is not None or not cells:
            return
        sweep = describe_sweep(self.context, self._started, cells, head_commit(self.context.plan.directory))
        sweep = sweep.model_copy(update={"branch": branch_for(self.context.plan.options, self.context.plan.directory)})
        self._open_results(self.context.results, sweep)
        self._keep_baseline(sweep)
        opened()
        self._prove_machine(cells)
        needed = any(self.context.plan.uses_gateway(cell) for cell in cells)
        if self._gateway and needed:
            self._prove_gateway(self._gateway)
            self._prove_models(self._gateway, cells)
        elif self._gateway:
            self._gateway.stop()

    def _open_results(self, results: Path, sweep: Sweep) -> None:
        try:
            results.mkdir(parents=True)
            write_sweep(results, sweep)
            write_candidate(results, ((entry.name, entry.data) for entry in self.context.plan.overlay))
            self._reserve.take(2 * len(sweep.to_json()) + ASIDE)
            _point_latest(results)
        except OSError as error:
            remedy = "Free some space there" if is_full(error) else "Name a directory"
            raise SweepFailed(f"{results} cannot be made: {error.strerror}. {remedy} in --wfbench-results") from error
        self._sweep, self._writer = sweep, RowWriter(results)

    def _keep_baseline(self, sweep: Sweep) -> None:
        try:
            write_baseline(self.context.results, baseline_for(self.context.plan, sweep.branch, sweep.sweep_id))
        except (StoreError, EvidenceError) as error:
            self._stop = Stop(kind="preflight", cause=self.context.redactor.text(str(error)))
            raise SweepFailed(str(error)) from error

    def _prove_machine(self, cells: Sequence[Cell]) -> None:
        plan = self.context.plan
        name = sandbox_name(plan.options)
        cause: str | None = None
        if (failed := obstacle(name)) is not None:
            cause = str(MachineUnfit(failed))
        else:
            subjects = dict.fromkeys(str(cell.subject) for cell in cells)
            tried = agent_checks([(subject, plan.runtimes[subject]) for subject in subjects], make_sandbox(name))
            if (failed := next((check for check in tried if not check.ok), None)) is not None:
                cause = f"{failed.name}: {failed.detail}. {capitalised(failed.remedy)}"
        if cause is not None:
            self._stop = Stop(kind="preflight", cause=self.context.redactor.text(cause))
            raise SweepFailed(cause)

    def _give_up(self, cause: str) -> None:
        """Start no cell any more: told by the gateway's own thread."""
        self.context.guard.halt(self.context.redactor.text(" ".join(cause.split()))[:CAUSE])

    def _prove_gateway(self, gateway: SweepGateway) -> None:
        try:
            gateway.prove(self.context.seat.sweep_id, self.context.results / USAGE)
        except (GatewayLost, GatewayRefused) as error:
            self._stop = Stop(kind="preflight", cause=self.context.redactor.text(str(error)))
            raise SweepFailed(f"the gateway failed its preflight: {error}") from error

    def _prove_models(self, gateway: SweepGateway, cells: Sequence[Cell]) -> None:
        plan = self.context.plan
        wanted = () if plan.options.no_preflight else probes(plan, cells)
        try:
            dead = dead_models(Gateway(gateway.address), wanted)
        except GatewayLost as error:
            dead = (str(error),)
        if dead:
            cause = self.context.redactor.text(f"no cell was run, for a model gave no sign of life. {'; '.join(dead)}")
            self._stop = Stop(kind="preflight", cause=cause)
            raise SweepFailed(cause)

    def write(self, row: Row) -> None:
        """Append a row; it is on the disk when this returns.

        Raises:
            SweepFailed: when it cannot be, or can be but with space that was set aside: no other row will find any.
        """
        if self._writer is None:
            raise SweepFailed("a row came before the sweep had begun")
        self._written.add(row.cell_id)
        self._cut_short = self._cut_short or row.kind == "cancelled"
        try:
            self._writer.append(row)
        except OSError as error:
            cause = because(error, self.context.results)
            if not self._write_at_last(self._writer, row):
                cause += f". The row of {row.cell_id} is lost"
            self._stop = self._stop or Stop(kind="other", cause=cause)
            raise SweepFailed(cause) from error

    def has_row(self, cell: Cell) -> bool:
        """Whether a row of this cell was written by this sweep."""
        return cell.id in self._written

    def _write_at_last(self, writer: RowWriter, row: Row) -> bool:
        try:
            if self._reserve.give_back():
                writer.append(row)
                return True
        except OSError:
            return False
        return False

    def interrupt(self) -> None:
        """Remember that the sweep was cut short from outside."""
        self._stop = self._stop or Stop(kind="interrupted", cause="the sweep was interrupted")

    def seal(self, rows: Iterable[str], exit_status: int) -> Sweep | None:
        """Stop the gateway and write the manifest for the last time; ``rows`` are the ids of cells that have one.

        Raises:
            OSError: when it cannot be written; what is there stays as it is.
        """
        open_calls: tuple[OpenCall, ...] = ()
        books: Books | None = None
        if self._gateway:
            books = self._gateway.books() if self._sweep else None
            open_calls = self._gateway.stop()
        if self._sweep is None:
            return None
        self._reserve.give_back()
        done = set(rows)
        missing = [cell for cell in self._sweep.planned if cell.cell_id not in done]
        halt = self.context.guard.halted()
        # A budget that just lasted has stopped nothing.
        if halt and (halt.kind != "budget" or missing or self._cut_short):
            self._stop = Stop(kind=halt.kind, cause=halt.cause)
        skipped = [_cut(cell, halt) for cell in missing] if halt else []
        self._sweep = self._sweep.model_copy(
            update={
                "ended_at": stamp(now()),
                "run_status": "aborted" if missing or self._stop else "complete",
                "exit_status": exit_status,
                "stop": self._stop,
                "skipped": (*self._sweep.skipped, *skipped),
                "open_calls": open_calls,
                "spending": books.spending if books else None,
                "traffic": books.traffic if books else None,
            }
        )
        write_sweep(self.context.results, self._sweep)
        fill_gaps(self.context.plan, done)
        return self._sweep

    def settle(self, exit_status: int) -> None:
        """Record the exit status that pytest ends with, once the verdict gave it its meaning."""
        if self._sweep is not None and self._sweep.exit_status != exit_status:
            self._sweep = self._sweep.model_copy(update={"exit_status": exit_status})
            write_sweep(self.context.results, self._sweep)

    def close(self) -> None:
        """Give back every directory and process. Asked again, it does nothing."""
        self._stack.close()


def _cut(cell: PlannedCell, halt: Halt) -> Skipped:
    kind: SkipKind = "budget-stop" if halt.kind == "budget" else "outage-stop"
    return Skipped(kind=kind, task=cell.task, cell_id=cell.cell_id, reason=halt.cause)


def _point_latest(results: Path) -> None:
    """Let ``latest`` name the newest sweep, by one atomic rename."""
    link = results.parent / LATEST
    staged = results.parent / f".{LATEST}-{secrets.token_hex(4)}"
    staged.symlink_to(results.name)
    if link.is_symlink() or not link.exists():
        staged.replace(link)
    else:
        staged.unlink()
