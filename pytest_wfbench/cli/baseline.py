"""``wfbench baseline``: sweeps that later ones are compared with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pytest_wfbench.baselines.choose import choose
from pytest_wfbench.baselines.place import open_store
from pytest_wfbench.baselines.store import KINDS, Entry, Store, StoreError, entries, file, load
from pytest_wfbench.cli._exit import FAILED, NOTHING, CliError, usage_errors
from pytest_wfbench.cli._results import derived, directory_argument, json_option, writing
from pytest_wfbench.evidence.baseline import Baseline, BaselineKind, questions_of, write_baseline
from pytest_wfbench.evidence.store import EvidenceError, read_rows, read_sweep

Command = Callable[..., Any]


def store_option(command: Command) -> Command:
    """Add ``--store``."""
    told = "A directory, or git:DIR#BRANCH.  [branch: wfbench-baselines]"
    return click.option("--store", "place", required=True, metavar="STORE", help=told)(command)


@click.group("baseline")
def command() -> None:
    """File sound sweeps, and compare later ones with them."""


@command.command("add")
@directory_argument
@store_option
@click.option("--as", "name", required=True, metavar="NAME", help="Name of the branch or release it stands for.")
@click.option("--kind", type=click.Choice(KINDS), default="branch", show_default=True, help="What it stands for.")
def add(directory: Path, place: str, name: str, kind: BaselineKind) -> None:
    """File the summary of a sweep.

    A sweep that is BROKEN or INCOMPLETE is refused: exit status 1.

    \b
    Example:
        wfbench baseline add results/latest --as main --kind main --store git:.
        wfbench baseline add results/latest --as my-branch --store ../baselines
    """
    from pytest_wfbench.report.filing import NotValid, as_baseline

    report = derived(directory).summary
    try:
        filed = as_baseline(report, kind, name)
    except NotValid as error:
        raise CliError(f"not filed: {error}", FAILED) from error
    with usage_errors(StoreError):
        store = _open(place)
        entry = file(store, filed)
    click.echo(f"filed {_words(entry)} in {store.shown}")


@command.command("list")
@store_option
@json_option
def list_(place: str, as_json: bool) -> None:
    """List what is filed, the newest of each name first."""
    with usage_errors(StoreError, EvidenceError):
        store = _open(place)
        found = [load(store, entry) for entry in entries(store)]
    if as_json:
        heads = [baseline.model_dump(mode="json", exclude={"entries"}) for baseline in found]
        click.echo(json.dumps(heads, indent=1, ensure_ascii=False))
    for baseline in found if not as_json else ():
        click.echo(_line(baseline))
    if not found and not as_json:
        click.echo(f"nothing is filed in {store.shown}")


@command.command("show")
@click.argument("name")
@store_option
@click.option("--kind", type=click.Choice(KINDS), help="What it stands for.  [default: any]")
@click.option("--sweep", "sweep_id", metavar="ID", help="One sweep.  [default: the newest]")
def show(name: str, place: str, kind: str | None, sweep_id: str | None) -> None:
    """Print a filed summary as JSON; exit status 5 where there is none."""
    with usage_errors(StoreError, EvidenceError):
        store = _open(place)
        wanted = [e for e in entries(store) if e.name == name and kind in (None, e.kind)]
        newest = max((e for e in wanted if sweep_id in (None, e.sweep_id)), key=_when, default=None)
        if newest is None:
            raise CliError(f"nothing is filed as {name} in {store.shown}: see wfbench baseline list", NOTHING)
        click.echo(load(store, newest).to_json(), nl=False)


@command.command("use")
@directory_argument
@store_option
@click.option("--branch", metavar="B", help="Branch whose baseline comes first.")
def use(directory: Path, place: str, branch: str | None) -> None:
    """Choose what a results directory is compared with, and keep it there for its reports.

    A sweep does so itself where it is told --wfbench-baselines. Exit status 5 where no baseline shares a task with it.
    """
    with usage_errors(StoreError, EvidenceError):
        sweep, rows = read_sweep(directory), read_rows(directory).rows
        store = _open(place)
        found = choose(store, branch or sweep.branch, questions_of(rows), sweep.sweep_id)
    with writing(directory):
        write_baseline(directory, found)
    if found is None:
        raise CliError(f"no older baseline in {store.shown} shares a task with {directory}", NOTHING)
    click.echo(f"compared with {_line(found)}")


def _open(place: str) -> Store:
    return open_store(place, Path.cwd())


def _when(entry: Entry) -> str:
    return entry.sweep_id


def _words(entry: Entry) -> str:
    return f"{entry.kind} {entry.name}, sweep {entry.sweep_id}"


def _line(baseline: Baseline) -> str:
    commit = f" · {baseline.head}" if baseline.head else ""
    told = f"{baseline.kind} {baseline.name} · {baseline.sweep_id} · {baseline.word}"
    return f"{told} · {baseline.passed}/{baseline.graded} pass{commit}"
