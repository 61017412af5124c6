"""``wfbench apply``: a promoted candidate written into a repository, all of it or nothing."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_wfbench import clock
from pytest_wfbench.apply.errors import Faulted, Refused, Stopped
from pytest_wfbench.apply.journal import journals
from pytest_wfbench.apply.places import Root
from pytest_wfbench.apply.preview import preview
from pytest_wfbench.apply.recover import recover
from pytest_wfbench.apply.signals import heard_between_steps
from pytest_wfbench.apply.transaction import apply_changes, differences
from pytest_wfbench.apply.warrant import Warrant, warrant
from pytest_wfbench.cli._exit import FAILED, INTERRUPTED, CliError, end, usage_errors
from pytest_wfbench.evidence.store import EvidenceError
from pytest_wfbench.matrix.problems import printable
from pytest_wfbench.promotion.explain import BadPromotion


@click.command("apply")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--to", "repo", required=True, metavar="REPO", type=click.Path(path_type=Path), help="Its root.")
@click.option("--dry-run", is_flag=True, help="Print the diff, and change nothing.")
@click.option("--recover", "recovering", is_flag=True, help="Finish an apply that was cut short.")
def command(directory: Path | None, repo: Path, dry_run: bool, recovering: bool) -> None:
    """Write the promoted candidate of a results directory into a repository, mirrors included.

    The decision is made again from the rows. Every file must be what the evidence was bound to; then all of them are
    exchanged, or, on any fault or signal, none. Nothing is committed. Exit status: 0 when all is written, 1 when it is
    refused or was undone, or when a recovery leaves something.

    \b
    Example:
        wfbench apply results/latest --to . --dry-run
        wfbench apply results/latest --to .
        wfbench apply --recover --to .
    """
    try:
        with usage_errors(EvidenceError, BadPromotion), Root(repo.resolve()) as root:
            if recovering:
                _recover(root)
            elif directory is None:
                raise CliError("no results directory: give one, or --recover")
            else:
                _apply(root, warrant(directory, clock.now()), dry_run)
    except Refused as error:
        raise CliError(f"not applied, nothing was touched: {error}", FAILED) from error
    except Faulted as error:
        raise CliError("\n".join((f"not applied: {error}", *error.left)), FAILED) from error
    except Stopped as error:
        raise CliError(str(error), INTERRUPTED) from error
    except OSError as error:
        raise CliError(f"{error.filename or repo}: {error.strerror}", FAILED) from error


def _recover(root: Root) -> None:
    """Say what was done; it ends well only where nothing is left to be finished."""
    told = recover(root)
    for line in told or (f"nothing to recover in {root.path}",):
        click.echo(printable(line))
    if next(journals(root), None):
        end(FAILED)


def _apply(root: Root, found: Warrant, dry_run: bool) -> None:
    if dry_run:
        for change, before in differences(root, found.changes):
            for line in preview(change, before, found.data[change.path]):
                click.echo(line)
        return
    with heard_between_steps() as watch:
        apply_changes(root, found.changes, found.data, watch)
    for change in found.changes:
        click.echo(f"{'changed' if change.base else 'added'} {printable(change.path)}")
