"""pytest's side of a sweep: rows to disk as they come, the end of the sweep, the terminal summary."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.cell.artifacts import STDERR, cell_directory
from pytest_wfbench.cell.assemble import failed_row
from pytest_wfbench.cell.trouble import TROUBLE, kind_of
from pytest_wfbench.derive import Derived, append_summary, derive, derive_all, write_comment
from pytest_wfbench.distribute import end_soon, for_worker
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import EvidenceError, read_rows
from pytest_wfbench.interrupt import is_interrupted
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.problems import shown_path
from pytest_wfbench.report.health import UNSANDBOXED
from pytest_wfbench.report.terminal import terminal_lines
from pytest_wfbench.report.words import plural
from pytest_wfbench.sandbox.removal import CleanupFailed
from pytest_wfbench.shape import shape_report
from pytest_wfbench.space import because, is_full
from pytest_wfbench.stash import CELL, EARLIER, ROW, SWEEP
from pytest_wfbench.sweep.compared import traces_sent
from pytest_wfbench.sweep.context import SweepContext
from pytest_wfbench.sweep.live import LiveSweep, SweepFailed
from pytest_wfbench.sweep.plan import Plan

HOST = "host"
ROW_ATTRIBUTE = "wfbench_row"
WORKER_INPUT = "wfbench"
# What ends every cell that runs at once; whoever watches the gateway mends it, or stops the sweep.
INCIDENT = "gateway-lost"


class CellReporter:
    """In every process that runs cells: outcomes by the overview's table, and the row sent along with the report."""

    def __init__(self, context: SweepContext) -> None:
        self.context = context

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start no new cell once the sweep was stopped. Without a boundary, JUnit XML says so of every cell."""
        if CELL in item.stash and self.context.plan.options.sandbox == HOST:
            item.user_properties.append(("wfbench_sandbox", HOST))
        if CELL in item.stash and (halt := self.context.guard.halted()):
            pytest.skip(f"{halt.kind}-stop: {halt.cause}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show a miss as xfailed and an unusable cell as failed; send the row with the report that decides it."""
        report = yield
        cell, error = item.stash.get(CELL, None), call.excinfo.value if call.excinfo else None
        if cell is not None and report.when == "teardown" and isinstance(error, CleanupFailed):
            report.longrepr = f"cleanup-failure: {error}"
        elif cell is not None and report.when != "teardown" and (report.failed or ROW in item.stash):
            earlier = item.stash.setdefault(EARLIER, [])
            row = item.stash.get(ROW, None) or failed_row(
                cell, self.context, kind_of(error), str(error), len(earlier) + 1
            )
            self._halt_if_full(error)
            self.attach(report, row, explained=isinstance(error, TROUBLE), earlier=tuple(earlier))
            # Items live as long as the session: what hangs on them would grow with the number of cells.
            item.stash.setdefault(ROW, row)
            del item.stash[ROW], item.stash[EARLIER]
        if cell is not None and report.when == "teardown" and report.failed:
            report.longrepr = self.context.redactor.text(str(report.longrepr))
        return report

    def _halt_if_full(self, error: BaseException | None) -> None:
        if isinstance(error, OSError) and is_full(error):
            self.context.guard.halt(because(error, self.context.seat.scratch))

    def attach(self, report: pytest.TestReport, row: Row, explained: bool = False, earlier: Sequence[Row] = ()) -> None:
        """Give a report its row and the row's outcome, and count it for the outage stop.

        ``explained``: the row's reason says all there is, and a traceback would add nothing. ``earlier`` are the rows
        of attempts that do not count.
        """
        if report.failed and not explained:
            # Locals that pytest is asked to show may hold anything.
            report.sections.append(("what failed", self.context.redactor.text(str(report.longrepr))))
        shape_report(report, row)
        said = cell_directory(self.context.results, row.cell_id, row.attempt) / STDERR
        if row.outcome == "unusable" and said.exists():
            report.longrepr = f"{report.longrepr}\nwhat its sessions wrote to standard error: {shown_path(said)}"
        setattr(report, ROW_ATTRIBUTE, "\n".join(each.to_json() for each in (*earlier, row)))
        incident = INCIDENT if row.kind == INCIDENT else ""
        self.context.guard.note(row.outcome, f"{row.kind}: {row.reason}", incident)


class SweepReporter:
    """In the controller: the one writer of rows, and the end of the sweep."""

    def __init__(self, config: pytest.Config, live: LiveSweep, cells: CellReporter) -> None:
        self.config = config
        self.live = live
        self.cells = cells
        self.nodes: list[Any] = []
        self.derived: Derived | None = None
        self.trouble: str | None = None
        self.told: list[str] = []
        self.other_failures = False
        self.stopped_itself = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers the selection is known here."""
        if is_interrupted(self.config):
            return
        self._begin([item.stash[CELL] for item in session.items if CELL in item.stash])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand the proven plan, and the way to the gateway, to a worker."""
        node.workerinput[WORKER_INPUT] = for_worker(self.live.context)
        self.nodes.append(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """With workers the selection is known once the first of them has collected, and before any cell is dealt."""
        by_id = self._by_node_id()
        self._begin([by_id[name] for name in ids if name in by_id])

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A crashed worker's cell is unusable; the sweep goes on."""
        cell = self._by_node_id().get(crashitem)
        if cell is not None and not self.live.has_row(cell):
            reason = "the worker process that ran the cell died"
            self.cells.attach(report, failed_row(cell, self.live.context, "worker-crash", reason))

    def _by_node_id(self) -> dict[str, Cell]:
        plan, root = self.live.context.plan, self.config.rootpath
        return {plan.node_id(cell, root): cell for cell in plan.cells()}

    def _begin(self, selected: Sequence[Cell]) -> None:
        if (missing := self.live.context.plan.unjudged(selected)) is not None:
            pytest.exit(f"wfbench: {missing}", returncode=pytest.ExitCode.USAGE_ERROR)
        if selected and not self.live.begun:
            terminal: Any = self.config.pluginmanager.getplugin("terminalreporter")
            place = shown_path(self.live.context.results)
            terminal.write_line(f"wfbench: {plural(len(selected), 'cell')}, results in {place}/")
            if self.live.context.plan.options.sandbox == HOST:
                terminal.write_line(f"wfbench: {UNSANDBOXED}", red=True, bold=True)
        try:
            self.live.begin(selected, self._incomplete)
        except SweepFailed as error:
            pytest.exit(f"wfbench: {error}", returncode=pytest.ExitCode.TESTS_FAILED)

    def _incomplete(self) -> None:
        """Should the sweep be killed, this is what it leaves."""
        with suppress(OSError, EvidenceError):
            write_comment(self.live.context.results, derive(self.live.context.results))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the rows of a finished cell, one for each attempt; they are on the disk when this returns."""
        text = getattr(report, ROW_ATTRIBUTE, None)
        if text is not None:
            delattr(report, ROW_ATTRIBUTE)  # pytest keeps every report
            for line in text.split("\n"):
                self._write(Row.model_validate_json(line))
        elif report.failed:
            self.other_failures = True

    def _write(self, row: Row) -> None:
        try:
            self.live.write(row)
        except SweepFailed as error:
            end_soon(self.nodes)
            pytest.exit(f"wfbench: {error}", returncode=pytest.ExitCode.TESTS_FAILED)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that the sweep was cut short; pytest's own stops (``-x`` with workers) are none from outside."""
        # pytest and xdist each have a class of their own for it.
        self.stopped_itself = isinstance(excinfo.value, KeyboardInterrupt) and excinfo.type is not KeyboardInterrupt
        if not self.stopped_itself:
            self.live.interrupt()
            end_soon(self.nodes)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the gateway, seal the manifest, derive every report, and give the exit status its meaning."""
        try:
            self._finish(session, int(session.exitstatus))
        except (OSError, EvidenceError) as error:
            results = self.live.context.results
            self.trouble = because(error, results) if isinstance(error, OSError) else str(error)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            with suppress(OSError, EvidenceError):
                self.derived = derive(results)

    def _finish(self, session: pytest.Session, status: int) -> None:
        rows = read_rows(self.live.context.results).rows if self.live.begun else ()
        if self.live.seal((row.cell_id for row in rows), status) is None:
            return
        self.derived = derive_all(self.live.context.results)
        # With workers `-x` ends as if interrupted; without, by its failures.
        own = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, *([pytest.ExitCode.INTERRUPTED] * self.stopped_itself))
        if status in own and not self.other_failures:
            session.exitstatus = self.derived.verdict.exit_status
            self.live.settle(self.derived.verdict.exit_status)
        self._tell_others(self.derived, status == pytest.ExitCode.INTERRUPTED and not self.stopped_itself)

    def _tell_others(self, derived: Derived, interrupted: bool) -> None:
        """The step's summary and the traces: what goes wrong with them is said, and changes no verdict."""
        context = self.live.context
        # Whoever interrupts a sweep does not wait for a receiver.
        sent = None if interrupted else traces_sent(context.plan, context.results, context.seat.sweep_id)
        self.told = [context.redactor.text(said) for said in (append_summary(derived, os.environ), sent) if said]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, the verdict and where the files are."""
        if self.trouble is not None:
            terminalreporter.write_line(f"wfbench: {self.trouble}", red=True)
        if self.derived is not None:
            for line in terminal_lines(self.derived.summary, self.live.context.results):
                terminalreporter.write_line(line)
        for said in self.told:
            terminalreporter.write_line(f"wfbench: {said}")


def register(config: pytest.Config, plan: Plan, dry: bool) -> None:
    """Start the sweep's controller side, and see that it ends with pytest; a dry one has no gateway and no results."""
    try:
        live = LiveSweep(plan, gateway=plan.needs_gateway and not dry)
    except OSError as error:
        place = Path(error.filename or ".").parent
        pytest.exit(f"wfbench: {because(error, place)}", returncode=pytest.ExitCode.TESTS_FAILED)
    config.add_cleanup(live.close)
    if dry:
        config.stash[SWEEP] = live.context
        return
    cells = register_worker(config, live.context)
    config.pluginmanager.register(SweepReporter(config, live, cells), "wfbench-sweep")


def register_worker(config: pytest.Config, context: SweepContext) -> CellReporter:
    """Register what every process that runs cells needs."""
    config.stash[SWEEP] = context
    cells = CellReporter(context)
    config.pluginmanager.register(cells, "wfbench-cells")
    return cells
