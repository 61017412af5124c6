"""pytest's hooks: options, discovery of case files, and, only where there are any, everything else.

Imported by every pytest start, so it imports nothing heavy at its top.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_wfbench.discover import case_files
from pytest_wfbench.options import SPECS, BadOption, Options, OptionSpec, read_options

if TYPE_CHECKING:
    from pytest_wfbench.sweep.plan import Plan


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register every option of ``options.SPECS``, and the ini name of each."""
    group = parser.getgroup("wfbench", "wfbench: paired evaluation of agents")
    for spec in SPECS:
        ini_type: Any = {"flag": "bool", "many": "linelist"}.get(spec.kind, "string")
        parser.addini(spec.ini, spec.help, type=ini_type, default=None)
        shape: dict[str, Any] = {"metavar": spec.metavar}
        if spec.kind == "flag":
            shape = {"action": "store_true"}
        elif spec.kind == "many":
            shape["action"] = "append"
        group.addoption(spec.flag, dest=spec.ini, default=None, help=spec.help, **shape)


def _options(config: pytest.Config) -> Options:
    def lookup(spec: OptionSpec) -> Any:
        given = config.getoption(spec.ini)
        return given if given is not None else config.getini(spec.ini)

    try:
        return read_options(lookup)
    except BadOption as error:
        raise pytest.UsageError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Prove everything that was asked for before a worker starts or anything is spent."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        _join(config, worker)
    elif not _only_asks(config) and (files := case_files(config)):
        _lead(config, files)


def _only_asks(config: pytest.Config) -> bool:
    """Whether pytest is to print something about itself and ends before it collects."""
    return bool(config.option.help or config.option.version or config.getoption("cacheshow", False))


def _is_dry(config: pytest.Config) -> bool:
    """Whether cells are only to be shown, so that nothing may be spent and no results directory made."""
    option = config.option
    shows = option.showfixtures or option.show_fixtures_per_test or option.markers
    return bool(option.collectonly or shows or option.setupplan or option.setuponly)


def _join(config: pytest.Config, worker: dict[str, Any]) -> None:
    """Take part in the controller's sweep, if it has one."""
    if "wfbench" in worker:
        from pytest_wfbench.distribute import join_sweep
        from pytest_wfbench.interrupt import heed_signals
        from pytest_wfbench.reporter import register_worker

        heed_signals(config)
        context = join_sweep(worker["wfbench"])
        _register(config, context.plan)
        register_worker(config, context)


def _lead(config: pytest.Config, files: list[Path]) -> None:
    """Prove the case files and start the sweep's controller side."""
    from pytest_wfbench.interrupt import heed_signals
    from pytest_wfbench.matrix.problems import InvalidCases
    from pytest_wfbench.reporter import register
    from pytest_wfbench.sweep.prepare import prepare
    from pytest_wfbench.sweep.snapshot import MachineUnfit

    heed_signals(config)
    dry = _is_dry(config)
    try:
        plan = prepare(files, _options(config), config.invocation_params.dir, probe=not dry or config.option.setuponly)
    except InvalidCases as error:
        count = len(error.problems)
        raise pytest.UsageError(f"{count} problem{'s' * (count != 1)} in what is to be run\n{error}") from None
    except MachineUnfit as error:
        pytest.exit(f"wfbench: {error}", returncode=pytest.ExitCode.TESTS_FAILED)
    _register(config, plan)
    register(config, plan, dry)


def _register(config: pytest.Config, plan: Plan) -> None:
    from pytest_wfbench import fixtures
    from pytest_wfbench.collect import Collection

    for tag in sorted({tag for loaded in plan.tasks for tag in loaded.task.tags}):
        config.addinivalue_line("markers", f"{tag}: a tag of a wfbench task")
    config.pluginmanager.register(Collection(plan), "wfbench-collect")
    config.pluginmanager.register(fixtures, "wfbench-fixtures")
