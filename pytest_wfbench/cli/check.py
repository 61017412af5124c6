"""``wfbench check``: the proof of every oracle, and of every review's labels, without a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pytest_wfbench.cli._exit import FAILED, NOTHING, CliError, end, usage_errors
from pytest_wfbench.cli._results import json_option
from pytest_wfbench.matrix.hidden import expectation_path
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import InvalidCases
from pytest_wfbench.sandbox.identity import BadIdentity
from pytest_wfbench.scoring.prove import Proof, StateResult
from pytest_wfbench.sweep.proof import load_for_proof, proofs, record_expectation
from pytest_wfbench.sweep.snapshot import MachineUnfit

WORDS = {True: "pass", False: "fail", None: "-"}


@click.command("check")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-k", "only", metavar="TEXT", help="Only tasks whose id contains TEXT.")
@click.option("--repeat", type=click.IntRange(1, 100), default=1, help="Judge every state N times.", metavar="N")
@click.option("--sabotage", is_flag=True, help="Also plant what hostile work would, and see each oracle refuse it.")
@json_option
def command(paths: tuple[Path, ...], only: str | None, repeat: int, sabotage: bool, as_json: bool) -> None:
    """Prove the oracles of case files: fail on the ref, pass on the reference, fail on each bad one.

    For reviews: the change applies, and every label's path and lines exist with it applied.
    For oracles with junit results it records which tests must run in <oracle>.expect.json.

    Exit status: 0 when every oracle is proven, 1 when one is not or no sandbox works here, 5 when -k fits no task.

    \b
    Example:
        wfbench check cases/
        wfbench check cases/ledger.cases.yaml -k rounding --repeat 5 --sabotage
    """
    with usage_errors(InvalidCases, BadIdentity):
        tasks = _chosen(load_for_proof(paths), only)
        try:
            found = [_recorded(loaded, proof) for loaded, proof in proofs(tasks, repeat=repeat, sabotage=sabotage)]
        except MachineUnfit as error:
            raise CliError(str(error), FAILED) from error
    if as_json:
        click.echo(json.dumps([_plain(proof) for proof in found], indent=1))
    else:
        _show(found)
    end(FAILED if any(proof.faults for proof in found) else 0)


def _chosen(tasks: Sequence[LoadedTask], only: str | None) -> list[LoadedTask]:
    if not tasks:
        raise CliError("no task with an oracle or labels was found. Name a directory with *.cases.yaml files")
    chosen = [loaded for loaded in tasks if not only or only in loaded.task.id]
    if not chosen:
        known = ", ".join(sorted(loaded.task.id for loaded in tasks))
        raise CliError(f"-k {only}: no task's id contains that. With an oracle there are: {known}", NOTHING)
    return chosen


def _recorded(loaded: LoadedTask, proof: Proof) -> Proof:
    """Keep what a proven oracle must show from now on."""
    click.echo(f"{loaded.task.id}: {'proven' if not proof.faults else 'NOT PROVEN'}", err=True)
    if proof.expectation and not proof.faults and record_expectation(loaded, proof.expectation) and loaded.task.oracle:
        click.echo(f"  recorded {expectation_path(loaded.task.oracle)}", err=True)
    return proof


def _plain(proof: Proof) -> dict[str, object]:
    states = [dataclasses.asdict(result) for result in proof.results]
    tests = list(proof.expectation.tests) if proof.expectation else None
    return {
        "task": proof.task,
        "kind": proof.kind,
        "proven": not proof.faults,
        "faults": list(proof.faults),
        "states": states,
        "tests": tests,
    }


def _show(found: list[Proof]) -> None:
    table = Table("task", "oracle", "state", "verify", "oracle says", "wanted", "")
    for proof in found:
        for row in _rows(proof):
            table.add_row(*row)
    Console(width=None if Console().is_terminal else 160).print(table)
    for proof in found:
        for fault in proof.faults:
            click.echo(f"{proof.task}: {fault}")


def _rows(proof: Proof) -> Iterator[tuple[str, ...]]:
    for result in proof.results:
        said = ", ".join(sorted({WORDS[passed] for passed in result.oracle})) or "-"
        yield (
            proof.task,
            proof.kind,
            Path(result.state).name,
            WORDS[result.verify],
            said,
            WORDS[result.wanted],
            _mark(result),
        )


def _mark(result: StateResult) -> str:
    return "FAULT" if result.fault else "ok"
