"""``wfbench score``: what a review is worth against its labels."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_wfbench.cli._exit import CliError, usage_errors
from pytest_wfbench.files import UnsafeFile, read_untrusted

_FILE = click.Path(path_type=Path)


@click.group("score")
def command() -> None:
    """Score what agents wrote."""


@command.command("review")
@click.argument("artifact", type=_FILE)
@click.argument("labels", type=_FILE)
def review(artifact: Path, labels: Path) -> None:
    """Print the scores of a review (review-output.json) against the labels of its task, as JSON.

    Undefined scores are null. A review that is no whole one is refused with the reason a cell would give.

    \b
    Example:
        wfbench score review review-output.json labels.json
    """
    from pytest_wfbench.matrix.hidden import LABELS_BYTES
    from pytest_wfbench.scoring.artifact import ARTIFACT_LIMIT, InvalidArtifact, read_artifact
    from pytest_wfbench.scoring.labels import InvalidLabels, read_labels
    from pytest_wfbench.scoring.review import score_review

    with usage_errors(InvalidArtifact, InvalidLabels, UnsafeFile, OSError):
        found = read_artifact(_bytes(artifact, ARTIFACT_LIMIT))
        wanted = read_labels(_bytes(labels, LABELS_BYTES))
    click.echo(score_review(found, wanted.findings).model_dump_json(indent=1))


def _bytes(path: Path, limit: int) -> bytes:
    try:
        return read_untrusted(path.absolute().parent, path.name, limit)
    except FileNotFoundError as error:
        raise CliError(f"{path}: no such file") from error
