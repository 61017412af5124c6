"""``wfbench judge``: how far a judge can be trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pytest_wfbench.cli._exit import FAILED, USAGE_ERROR, CliError, end
from pytest_wfbench.cli._results import json_option, show
from pytest_wfbench.gateway.api import GatewayLost, GatewayRefused
from pytest_wfbench.matrix.labelled import read_labelled
from pytest_wfbench.matrix.problems import InvalidCases
from pytest_wfbench.options import BadOption, Options, OptionSpec, read_options
from pytest_wfbench.report.escape import one_line
from pytest_wfbench.report.words import dollars, plural
from pytest_wfbench.statistics.calibration import Calibration, OneClass, calibrate
from pytest_wfbench.sweep.calibration import Opinion, opinions
from pytest_wfbench.sweep.judge import DEFAULT, JudgeRoute, route_of
from pytest_wfbench.usage.prices import BadPrices, PriceTable

WIDTH = 10


@click.group("judge")
def command() -> None:
    """Hold a judge against people."""


@command.command("calibrate")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--judge-model", default=DEFAULT, show_default=True, metavar="M", help="As --wfbench-judge-model.")
@click.option("--votes", default="1", show_default=True, metavar="N", help="Verdicts for each answer; odd.")
@click.option("--judge-gateway", metavar="URL", help="Gateway of a model that is a bare name.")
@json_option
def calibrate_command(file: Path, judge_model: str, votes: str, judge_gateway: str | None, as_json: bool) -> None:
    """Score a judge on answers that people have labelled.

    Prints agreement, Cohen's kappa and the confusion table. Exit status: 1 where the judge gave no verdict on some
    answer.

    \b
    Example:
        wfbench judge calibrate cases/smoke/labels.yaml
        wfbench judge calibrate labels.yaml --judge-model litellm/gpt-5-mini --votes 3
    """
    given = {"judge-model": judge_model, "judge-votes": votes, "judge-gateway": judge_gateway}
    try:
        answers = read_labelled(file)
        options = read_options(lambda spec: given.get(spec.name, _unset(spec)))
        route = _route(options, file)
        found = opinions(answers, route, options)
        result = calibrate((o.answer.label == "pass", o.passed) for o in found if o.passed is not None)
    except (InvalidCases, BadOption, BadPrices, GatewayRefused) as error:
        raise CliError(str(error), USAGE_ERROR) from error
    except (GatewayLost, OneClass) as error:
        raise CliError(f"no calibration: {_lost(found) if isinstance(error, OneClass) else error}", FAILED) from error
    show(_plain(result, found, route) if as_json else _told(result, found, route))
    if any(opinion.passed is None for opinion in found):
        end(FAILED)


def _unset(spec: OptionSpec) -> Any:
    return None


def _route(options: Options, file: Path) -> JudgeRoute:
    route, problems = route_of(options, [file.absolute()], Path.cwd(), os.environ)
    if route is None or problems:
        raise InvalidCases(problems)
    return route


def _lost(found: Sequence[Opinion]) -> str:
    causes = list(dict.fromkeys(opinion.trouble for opinion in found if opinion.trouble))
    return f"the judge gave no verdict on {plural(sum(o.passed is None for o in found), 'answer')}: {'; '.join(causes)}"


def _cost(found: Sequence[Opinion]) -> float | None:
    return PriceTable.load(None).cell_cost([event for opinion in found for event in opinion.events])


def _told(result: Calibration, found: Sequence[Opinion], route: JudgeRoute) -> str:
    models = ", ".join(sorted({event.answered_model for o in found for event in o.events if event.answered_model}))
    lines = [
        f"judge {route.typed}, answered by {one_line(models, 600) or 'nobody'}, {plural(route.votes, 'vote')} each",
        f"{plural(result.answers, 'answer')}, agreement {100 * result.agreement:.1f} %, kappa {result.kappa:.3f}, "
        f"cost {dollars(_cost(found))}",
        "",
        f"{'':<{WIDTH}}{'judge pass':>{WIDTH + 2}}{'judge fail':>{WIDTH + 2}}",
        f"{'label pass':<{WIDTH}}{result.both_pass:>{WIDTH + 2}}{result.people_alone:>{WIDTH + 2}}",
        f"{'label fail':<{WIDTH}}{result.judge_alone:>{WIDTH + 2}}{result.both_fail:>{WIDTH + 2}}",
    ]
    apart = [o for o in found if o.passed is not None and o.passed is not (o.answer.label == "pass")]
    lines += ["", *(f"{o.answer.id}: label {o.answer.label}, judge: {o.reason}" for o in apart)] if apart else []
    lost = [opinion for opinion in found if opinion.passed is None]
    lines += ["", _lost(found)] if lost else []
    return "\n".join(lines) + "\n"


def _plain(result: Calibration, found: Sequence[Opinion], route: JudgeRoute) -> str:
    value = {
        "judge": route.typed,
        "votes": route.votes,
        "answers": result.answers,
        "agreement": result.agreement,
        "kappa": result.kappa,
        "confusion": {
            "both_pass": result.both_pass,
            "both_fail": result.both_fail,
            "judge_alone": result.judge_alone,
            "people_alone": result.people_alone,
        },
        "cost_usd": _cost(found),
        "opinions": [
            {"id": o.answer.id, "label": o.answer.label, "pass": o.passed, "reason": o.reason, "trouble": o.trouble}
            for o in found
        ],
    }
    return json.dumps(value, indent=1) + "\n"
