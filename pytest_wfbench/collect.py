"""``*.cases.yaml`` as pytest items: one module a file, one function a task, one parameter a cell."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.cell.cleanup import clear_up
from pytest_wfbench.cell.procedure import run_cell
from pytest_wfbench.cell.retry import attempts
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.load import SUFFIX, LoadedTask
from pytest_wfbench.stash import CELL, EARLIER, OPENING, ROW
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.sweep.rooms import open_cell_workspace


class CasesFile(pytest.Module):
    """A case file: a module whose functions are its tasks."""

    plan: Plan

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType(self.path.name)
        module.__file__ = str(self.path)
        for loaded in self.plan.tasks_of(self.path):
            for variation in range(len(loaded.task.variations) + 1):
                name = loaded.task.id + (f"~v{variation}" if variation else "")
                if self.plan.cells_of(self.path, name):
                    setattr(module, name, _function(name, loaded))
        return module

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Yield the cells of the file in their one order."""
        for name, function in vars(self.obj).items():
            if isinstance(function, types.FunctionType):
                yield from self._genfunctions(name, function)


def _function(name: str, loaded: LoadedTask) -> types.FunctionType:
    """Return a test function that stands, for whoever asks, where the task stands in the case file."""

    def run(
        request: pytest.FixtureRequest,
        cell: Cell,
        workspace: Any,
        sandbox: Any,
        gateway: Any,
        agent: Any,
        oracle: Any,
        judge: Any,
        wfbench_sweep: Any,
    ) -> None:
        opening, earlier = request.node.stash[OPENING], request.node.stash.setdefault(EARLIER, [])

        def once(number: int) -> Row:
            ground = workspace if number == 1 else open_cell_workspace(cell, sandbox, wfbench_sweep)
            rooms = (ground, sandbox, gateway, agent, oracle, wfbench_sweep, opening, judge, number)
            return clear_up(run_cell(cell, *rooms), ground, wfbench_sweep.redactor)

        for row in attempts(once, wfbench_sweep.plan.options.retries):
            earlier.append(row)
        request.node.stash[ROW] = earlier.pop()

    code = run.__code__.replace(co_filename=str(loaded.file), co_firstlineno=loaded.line, co_name=name)
    function = types.FunctionType(code, run.__globals__, name, run.__defaults__, run.__closure__)
    function.__annotations__ = run.__annotations__
    function.pytestmark = [getattr(pytest.mark, tag) for tag in loaded.task.tags]  # type: ignore[attr-defined]
    return function


class Collection:
    """The collecting hooks of one sweep."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
        """Collect the case files the plan knows."""
        if not file_path.name.endswith(SUFFIX) or not self.plan.tasks_of(file_path):
            return None
        module: CasesFile = CasesFile.from_parent(parent, path=file_path)
        module.plan = self.plan
        return module

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Task repositories and oracle roots are never collected as tests."""
        return True if collection_path in self.plan.closed_directories else None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make each cell of a task a parameter of its function."""
        module = metafunc.definition.parent
        if isinstance(module, CasesFile):
            cells = self.plan.cells_of(module.path, metafunc.definition.name)
            metafunc.parametrize("cell", list(self._parameters(cells)), indirect=True)

    def _parameters(self, cells: Iterable[Cell]) -> Iterator[Any]:
        for cell in cells:
            skip = self.plan.skip(cell)
            marks = [pytest.mark.skip(reason=f"{skip.kind}: {skip.reason}")] if skip else []
            yield pytest.param(cell, id=cell.parameter, marks=marks)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Keep the cell with its item, for hooks that run where no fixture does."""
        if isinstance(item, pytest.Function) and isinstance(item.parent, CasesFile):
            cell: Cell = item.callspec.params["cell"]  # type: ignore[assignment]
            item.stash[CELL] = cell
