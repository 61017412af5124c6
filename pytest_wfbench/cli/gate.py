"""``wfbench gate``: the decisions of a results directory, made again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pytest_wfbench.cli._exit import FAILED, NOTHING, CliError, end, usage_errors
from pytest_wfbench.cli._results import derived, json_option, show, writing
from pytest_wfbench.derive import write_promotion
from pytest_wfbench.promotion.model import Promotion
from pytest_wfbench.report.chance import chance_sentence
from pytest_wfbench.report.escape import one_line


@click.command("gate")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@json_option
@click.option("--explain", metavar="FILE", type=click.Path(path_type=Path), help="Tell a promotion.json in sentences.")
def command(directory: Path | None, as_json: bool, explain: Path | None) -> None:
    """Decide whether the candidates of a results directory are promoted, and write promotion.json.

    With --explain nothing is decided or written: FILE, of schema 5 or 6, is told in sentences, and where DIR is given,
    how FILE differs from what follows from its rows.

    Exit status: 0 when every candidate arm is promoted for every subject (--explain: when FILE does not differ), 1 when
    not, 5 when no candidate was run.

    \b
    Example:
        wfbench gate results/latest
        wfbench gate results/latest --json | jq '.decisions[] | {candidate_arm, decision, reasons}'
        wfbench gate results/latest --explain promotion.json
    """
    if explain is not None:
        _explain(explain, directory)
        return
    if directory is None:
        raise CliError("no results directory: give one, or --explain FILE")
    found = derived(directory)
    with writing(directory):
        text = write_promotion(directory, found)
    if found.promotion is None or text is None:
        raise CliError(f"{directory}: no candidate arm was run. Select one with --wfbench-arms", NOTHING)
    show(text if as_json else _told(found.promotion))
    end(0 if found.promotion.decision == "promote" else FAILED)


def _explain(file: Path, directory: Path | None) -> None:
    from pytest_wfbench.promotion.difference import differences
    from pytest_wfbench.promotion.explain import BadPromotion, OldPromotion, read_promotion
    from pytest_wfbench.promotion.explain import explain as sentences

    with usage_errors(BadPromotion):
        said = read_promotion(file)
    show("".join(f"{one_line(sentence, 2000)}\n" for sentence in sentences(said)))
    if directory is None or isinstance(said, OldPromotion):
        return
    found = derived(directory).promotion
    told = list(differences(json.loads(said.to_json()), json.loads(found.to_json()) if found else None))
    show("".join(f"{one_line(sentence, 2000)}\n" for sentence in told or ["It is what follows from the rows."]))
    end(FAILED if told else 0)


def _told(promotion: Promotion) -> str:
    lines = [f"{promotion.decision}"]
    for decision in promotion.decisions:
        against = f" against {decision.incumbent_arm}" if decision.incumbent_arm else ""
        subject = f" ({decision.subject})" if decision.subject else ""
        lines.append(f"{one_line(f'{decision.candidate_arm}{against}{subject}', 600)}: {decision.decision}")
        lines += [f"  - {one_line(reason, 2000)}" for reason in decision.reasons]
        if sentence := chance_sentence(decision.uncertainty):
            lines.append(f"  - {sentence}")
    return "\n".join(lines) + "\n"
