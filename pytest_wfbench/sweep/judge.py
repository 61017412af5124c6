"""Who judges answers: the model that was named, how it is reached, and what is missing for that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pytest_wfbench.gateway.api import Labels
from pytest_wfbench.gateway.providers import ProviderUnusable, provider_of
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.subject import REPLAY
from pytest_wfbench.options import Options
from pytest_wfbench.scoring.judge import SESSION
from pytest_wfbench.sweep.scripts import CASSETTES, labels_of, places_of
from pytest_wfbench.wires import CHAT, RESPONSES

OPTION = "--wfbench-judge-model"
GATEWAY_OPTION = "--wfbench-judge-gateway"
DEFAULT = "replay/judge"
CODEX = "codex/"
# The provider behind a bare name, and the variables it is known by.
OWN = "opencode-go"
OWN_URL, OWN_KEYS = "OPENCODE_GO_BASE_URL", ("OPENCODE_GO_API_KEY", "OPENCODE_API_KEY")
NAME = re.compile(r"[!-~]{1,200}\Z")


class JudgeRoute(BaseModel):
    """The judge: as ``typed``, the ``model`` that is asked for at the gateway, in which wire format, how many times.

    ``cassettes`` is the directory of its scripts where it is replayed.
    """

    model_config = ConfigDict(frozen=True)

    typed: str
    model: str
    wire: str
    votes: int = 1
    cassettes: Path | None = None


def read_judge(
    options: Options, tasks: Sequence[LoadedTask], directory: Path, environment: Mapping[str, str]
) -> tuple[JudgeRoute | None, list[Problem]]:
    """Return the judge of tasks with a rubric, none where nobody is named or needed, and what is wrong with it."""
    files = list(dict.fromkeys(loaded.file for loaded in tasks if loaded.task.rubric))
    return route_of(options, files, directory, environment) if files else (None, [])


def route_of(
    options: Options, files: Sequence[Path], directory: Path, environment: Mapping[str, str]
) -> tuple[JudgeRoute | None, list[Problem]]:
    """Return the way to a judge of what stands in some files, none where nobody is named."""
    typed = options.judge_model or (DEFAULT if _cassettes(DEFAULT, files, directory) else None)
    if typed is None:
        return None, []
    if not NAME.match(typed) or typed.endswith("/"):
        remedy = "Write litellm/…, codex/…, a bare name, any LiteLLM id, or replay/<cassette>"
        return None, [Problem(OPTION, 0, "", "", f"{typed!a} is not a model", remedy)]
    if typed.startswith(REPLAY):
        place = _cassettes(typed, files, directory)
        if place is None:
            message = f"no cassette directory {CASSETTES}/{typed.removeprefix(REPLAY)} beside the case files"
            return None, [Problem(OPTION, 0, "", "", message, "Record one, or name another judge")]
        return JudgeRoute(typed=typed, model=typed, wire=CHAT, votes=options.judge_votes, cassettes=place), []
    route = JudgeRoute(typed=typed, model=_routed(typed), wire=_wire(typed), votes=options.judge_votes)
    return route, list(_unreachable(route, options, environment))


def _routed(typed: str) -> str:
    if typed.startswith(CODEX):
        return f"openai/{typed.removeprefix(CODEX)}"
    return typed if "/" in typed else f"{OWN}/{typed}"


def _wire(typed: str) -> str:
    return RESPONSES if typed.startswith(CODEX) else CHAT


def _unreachable(route: JudgeRoute, options: Options, environment: Mapping[str, str]) -> Iterator[Problem]:
    try:
        provider_of(route.model, judge_environment(options, environment))
    except ProviderUnusable as error:
        for fault in error.faults:
            remedy = fault.remedy.replace(OWN_KEYS[0], " or ".join(OWN_KEYS))
            if OWN_URL in fault.message + fault.remedy:
                remedy = f"Name it with {GATEWAY_OPTION} or wfbench_judge_gateway in the ini, as https://host[:port]"
            message = fault.message.replace(f": {OWN_URL}", f": {GATEWAY_OPTION}")
            message = message.replace(repr(route.model), repr(route.typed))
            yield Problem(OPTION, 0, "", "", message, remedy)


def judge_environment(options: Options, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the gateway of bare names is named as the options name it."""
    key = next((environment[name] for name in OWN_KEYS if environment.get(name, "").strip()), "")
    return {**environment, OWN_URL: options.judge_gateway or "", OWN_KEYS[0]: key}


def _cassettes(model: str, files: Sequence[Path], directory: Path) -> Path | None:
    return next((path for path in places_of(model.removeprefix(REPLAY), files, directory) if path.is_dir()), None)


def judge_labels(cell: Cell) -> Labels:
    """Return what a judge's cassette matches on."""
    return labels_of(cell, SESSION)
