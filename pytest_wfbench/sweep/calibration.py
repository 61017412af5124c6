"""A judge over labelled answers: the same gateway, the same prompt, the same rules as in a sweep."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.gateway.api import Labels, Route, Terms
from pytest_wfbench.gateway.client import Gateway
from pytest_wfbench.gateway.providers import providers_of
from pytest_wfbench.gateway.supervisor import GatewayConfig, start_gateway
from pytest_wfbench.matrix.labelled import Labelled
from pytest_wfbench.options import Options
from pytest_wfbench.scoring.judge import SESSION, Judge, Judged
from pytest_wfbench.scoring.judge_prompt import Case, tell
from pytest_wfbench.scoring.verdict import majority
from pytest_wfbench.sweep.judge import JudgeRoute, judge_environment

ARM = "calibration"
AT_ONCE = 4


@dataclass(frozen=True)
class Opinion:
    """What a judge said of one labelled answer: ``passed`` is none where it gave no verdict, and ``trouble`` why."""

    answer: Labelled
    passed: bool | None
    reason: str
    events: tuple[Event, ...]
    trouble: str | None = None


def opinions(answers: Sequence[Labelled], route: JudgeRoute, options: Options) -> list[Opinion]:
    """Have each answer judged, in their order. Raises GatewayLost, GatewayRefused."""
    with _gateway(route, options) as gateway, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda answer: _opinion(answer, route, gateway), answers))


def _opinion(answer: Labelled, route: JudgeRoute, gateway: Gateway) -> Opinion:
    labels = Labels(task=answer.id, arm=ARM, session=SESSION, run=1, agent="none")
    told = tell(Case((answer.prompt,), answer.rubric, answer.answer))
    return _read(answer, Judge(route.model, route.wire, route.votes).judge(told, gateway, answer.id, labels))


def _read(answer: Labelled, judged: Judged) -> Opinion:
    if judged.trouble or not judged.verdicts:
        return Opinion(answer, None, "", judged.usage.events, judged.trouble)
    verdict = majority(judged.verdicts)
    return Opinion(answer, verdict.passed, verdict.reason, judged.usage.events)


@contextmanager
def _gateway(route: JudgeRoute, options: Options) -> Iterator[Gateway]:
    models = () if route.cassettes else (route.model,)
    named = providers_of(models, judge_environment(options, os.environ))
    gateway = start_gateway(GatewayConfig(providers=tuple(named)))
    with tempfile.TemporaryDirectory(prefix="wfb-judge-") as directory:
        try:
            gateway.wait_ready()
            gateway.begin(ARM, Path(directory) / "usage.jsonl", (Route(model=route.model, cassettes=route.cassettes),),
                          None, Terms())  # fmt: skip
            yield gateway
        finally:
            gateway.stop()
