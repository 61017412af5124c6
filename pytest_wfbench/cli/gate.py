"""``wfbench gate``: the decisions of a results directory, made again."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_wfbench.cli._exit import FAILED, NOTHING, CliError, end
from pytest_wfbench.cli._results import derived, directory_argument, json_option, show, writing
from pytest_wfbench.derive import write_promotion
from pytest_wfbench.promotion.model import Promotion


@click.command("gate")
@directory_argument
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Decide whether the candidates of a results directory are promoted, and write promotion.json.

    Exit status: 0 when every candidate arm is promoted for every subject, 1 when not, 5 when no candidate was run.

    \b
    Example:
        wfbench gate results/latest
        wfbench gate results/latest --json | jq '.decisions[] | {candidate_arm, decision, reasons}'
    """
    found = derived(directory)
    with writing(directory):
        text = write_promotion(directory, found)
    if found.promotion is None or text is None:
        raise CliError(f"{directory}: no candidate arm was run. Select one with --wfbench-arms", NOTHING)
    show(text if as_json else _told(found.promotion))
    end(0 if found.promotion.decision == "promote" else FAILED)


def _told(promotion: Promotion) -> str:
    lines = [f"{promotion.decision}"]
    for decision in promotion.decisions:
        against = f" against {decision.incumbent_arm}" if decision.incumbent_arm else ""
        subject = f" ({decision.subject})" if decision.subject else ""
        lines.append(f"{decision.candidate_arm}{against}{subject}: {decision.decision}")
        lines += [f"  - {reason}" for reason in decision.reasons]
    return "\n".join(lines) + "\n"
