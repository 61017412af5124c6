"""One tiny request to each model before the first cell: a dead model, or a key that is no good, is said once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.gateway.api import Event, GatewayRefused, Labels, OpenRequest
from pytest_wfbench.gateway.asking import Answer, ask
from pytest_wfbench.gateway.client import Gateway
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sweep.judge import judge_labels
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

SESSION = "preflight"
PROMPT = "Reply with the one word: ok"
# Models that reason do so first; some refuse a limit that they cannot end in.
OUTPUT_TOKENS = 256
# A local model may have to be loaded.
SECONDS = 120.0
AT_ONCE = 8
TRIES, PAUSE = 3, 1.0
PASSING = frozenset({408, 429})
MESSAGE = 400
SAID = [{"role": "user", "content": PROMPT}]
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    ANTHROPIC: {"max_tokens": OUTPUT_TOKENS, "messages": SAID},
    CHAT: {"max_tokens": OUTPUT_TOKENS, "messages": SAID},
    RESPONSES: {"max_output_tokens": OUTPUT_TOKENS, "input": PROMPT},
}


@dataclass(frozen=True)
class Probe:
    """A model, the wire format that it is to be asked in, and the subjects that need both.

    ``labels`` are such as its cassettes expect, where it may be replayed.
    """

    model: str
    wire: str
    subjects: tuple[str, ...]
    labels: Labels | None = None


@dataclass(frozen=True)
class Sign:
    """What one request came to: ``cause`` why the model gave no sign of life, none if it did; ``pause`` in seconds."""

    cause: str | None = None
    passing: bool = False
    pause: float = PAUSE


def probes(plan: Plan, cells: Iterable[Cell]) -> tuple[Probe, ...]:
    """Return what the cells that are to be run need, and the judge; subjects that are replayed need no proof."""
    needed: dict[tuple[str, str], dict[str, None]] = {}
    judged: Cell | None = None
    for cell in cells:
        if judged is None and cell.task.rubric and plan.skip(cell) is None:
            judged = cell
        subject = cell.subject
        if plan.has_model(subject) and subject.model not in plan.cassettes and plan.skip(cell) is None:
            wire = get_agent(subject.agent).traits.wire
            needed.setdefault((subject.model, wire), {})[str(subject)] = None
    subjects = [Probe(model, wire, tuple(subjects)) for (model, wire), subjects in needed.items()]
    if plan.judge is None or judged is None:
        return tuple(subjects)
    return (
        *subjects,
        Probe(plan.judge.model, plan.judge.wire, (f"the judge {plan.judge.typed}",), judge_labels(judged)),
    )


def dead_models(gateway: Gateway, wanted: Sequence[Probe]) -> tuple[str, ...]:
    """Ask all models at once, and return a sentence for each that gives no sign of life. Raises GatewayLost."""
    if not wanted:
        return ()
    with ThreadPoolExecutor(min(len(wanted), AT_ONCE)) as pool:
        causes = list(pool.map(lambda probe: _prove(gateway, probe), wanted))
    return tuple(f"{', '.join(p.subjects)}: {cause}" for p, cause in zip(wanted, causes, strict=True) if cause)


def _prove(gateway: Gateway, probe: Probe) -> str | None:
    """Ask a model, again where the cause may pass."""
    sign = Sign()
    for left in reversed(range(TRIES)):
        sign = _ask(gateway, probe)
        if not (sign.passing and left):
            break
        time.sleep(sign.pause)
    return sign.cause


def _ask(gateway: Gateway, probe: Probe) -> Sign:
    own = Labels(task=SESSION, arm="none", session=SESSION, run=1, agent=probe.subjects[0].partition(":")[0])
    labels = probe.labels or own
    try:
        door = gateway.open(OpenRequest(cell_id=SESSION, labels=labels, models=(probe.model,), seconds=SECONDS))
    except GatewayRefused as error:
        return Sign(str(error))
    try:
        answer = ask(door, probe.wire, {"model": probe.model, **REQUESTS[probe.wire]}, SECONDS)
    except (OSError, HTTPException) as error:
        answer = Answer(0, 0.0, f"no answer ({error})".encode())
    finally:
        events = gateway.close(door).events
    return _read(answer, events)


def _read(answer: Answer, events: Sequence[Event]) -> Sign:
    """The provider's own words say more than what the road made of them."""
    status, pause, data = answer
    said = data.decode(errors="replace")
    last = events[-1] if events else None
    if status == 200 and last is not None and last.status == "success":
        return Sign()
    told = (last.http_status or status) if last is not None else status
    message = " ".join(((last.error_message if last else None) or said or "no word").split())[:MESSAGE]
    passing = status != 0 and (told in PASSING or told >= 500)
    return Sign(f"{told} {message}" if told else message, passing, pause or PAUSE)
