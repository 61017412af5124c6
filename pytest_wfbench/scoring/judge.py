"""The judge: one more session behind a door of its own, asked until it gives a valid verdict, or given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, NamedTuple, Protocol

from pytest_wfbench.gateway.api import Door, GatewayRefused, Labels, OpenRequest, SessionUsage
from pytest_wfbench.gateway.asking import LONGEST_PAUSE, ask
from pytest_wfbench.gateway.heard import hear
from pytest_wfbench.scoring.judge_prompt import Told
from pytest_wfbench.scoring.verdict import InvalidVerdict, Verdict, read_verdict
from pytest_wfbench.wires import CHAT, RESPONSES, error_text, read_object

SESSION = "judge"
SECONDS = 180.0
KEY_SLACK = 60.0
OUTPUT_TOKENS = 4096
# Between the tries for one verdict: it is asked once, and twice again.
PAUSES = (0.5, 1.5)
CAUSE = 400
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"pass": {"type": "boolean"}, "score": {"type": "number"}, "reason": {"type": "string"}},
    "required": ["pass", "score", "reason"],
    "additionalProperties": False,
}
# A model that cannot do what is asked for says so with one of these: it is asked for less then.
TOO_MUCH = frozenset({400, 422})


class Doors(Protocol):
    """What a judge needs of the gateway."""

    def open(self, request: OpenRequest) -> Door:
        """Open a door. Raises GatewayLost, GatewayRefused."""
        ...

    def close(self, door: Door) -> SessionUsage:
        """Close it. Raises GatewayLost."""
        ...


@dataclass(frozen=True)
class Judged:
    """What came of a judging. Without ``trouble`` there is a verdict for each vote. ``seconds`` is its wall clock."""

    verdicts: tuple[Verdict, ...]
    usage: SessionUsage
    seconds: float
    trouble: str | None = None


class Failed(NamedTuple):
    """Why one request gave no verdict; ``pause`` is what the answer said to wait, in seconds."""

    cause: str
    status: int = 0
    pause: float = 0.0


# What is asked for besides an answer, most first.
Wishes = frozenset[str]
WISHES: tuple[Wishes, ...] = (
    frozenset({"output", "temperature", "schema"}),
    frozenset({"output", "temperature"}),
    frozenset({"output"}),
    frozenset(),
)


def _chat(model: str, told: Told, wishes: Wishes) -> dict[str, Any]:
    said = [{"role": "system", "content": told.system}, {"role": "user", "content": told.user}]
    body: dict[str, Any] = {"model": model, "messages": said}
    if "output" in wishes:
        body["max_tokens"] = OUTPUT_TOKENS
    if "temperature" in wishes:
        body["temperature"] = 0
    if "schema" in wishes:
        form = {"name": "verdict", "strict": True, "schema": SCHEMA}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def _responses(model: str, told: Told, wishes: Wishes) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "instructions": told.system, "input": told.user}
    if "output" in wishes:
        body["max_output_tokens"] = OUTPUT_TOKENS
    if "temperature" in wishes:
        body["temperature"] = 0
    if "schema" in wishes:
        form = {"type": "json_schema", "name": "verdict", "strict": True, "schema": SCHEMA}
        body["text"] = {"format": form}
    return body


BODIES: Mapping[str, Callable[[str, Told, Wishes], dict[str, Any]]] = {CHAT: _chat, RESPONSES: _responses}


@dataclass
class Judge:
    """Asks one model over one wire format. ``ask_less`` says what it is no more asked for, since it refused it."""

    model: str
    wire: str
    votes: int = 1
    ask_less: int = 0
    sleep: Callable[[float], None] = time.sleep

    def judge(self, told: Told, gateway: Doors, cell_id: str, labels: Labels) -> Judged:
        """Ask for as many verdicts as there are votes, through a door that is closed again.

        Raises:
            GatewayLost: when the gateway goes meanwhile.
        """
        began = time.monotonic()
        life = (SECONDS + LONGEST_PAUSE) * (len(PAUSES) + 1) * self.votes + KEY_SLACK
        asked = OpenRequest(cell_id=cell_id, labels=labels, models=(self.model,), seconds=life)
        try:
            door = gateway.open(asked)
        except GatewayRefused as error:
            return Judged((), SessionUsage(), time.monotonic() - began, one_line(str(error)))
        try:
            votes = list(self._votes(door, told))
        finally:
            usage = gateway.close(door)
        verdicts = tuple(vote for vote in votes if isinstance(vote, Verdict))
        trouble = next((vote.cause for vote in votes if isinstance(vote, Failed)), None)
        return Judged(verdicts, usage, time.monotonic() - began, _cause(trouble, usage))

    def _votes(self, door: Door, told: Told) -> Iterator[Verdict | Failed]:
        """Yield the votes, up to one that cannot be had."""
        for _ in range(self.votes):
            vote = self._vote(door, told)
            yield vote
            if isinstance(vote, Failed):
                return

    def _vote(self, door: Door, told: Told) -> Verdict | Failed:
        for pause in PAUSES:
            vote = self._ask(door, told)
            if isinstance(vote, Verdict):
                return vote
            self.sleep(max(pause, vote.pause))
        return self._ask(door, told)

    def _ask(self, door: Door, told: Told) -> Verdict | Failed:
        """Ask once; a request that is refused for what it asks for is made again without that."""
        while True:
            answer = self._request(door, told)
            refused = isinstance(answer, Failed) and answer.status in TOO_MUCH
            if not refused or self.ask_less + 1 >= len(WISHES):
                return answer
            self.ask_less += 1

    def _request(self, door: Door, told: Told) -> Verdict | Failed:
        body = BODIES[self.wire](self.model, told, WISHES[self.ask_less])
        try:
            status, pause, data = ask(door, self.wire, body, SECONDS)
        except (OSError, HTTPException) as error:
            return Failed(f"the judge gave no answer: {type(error).__name__}: {error}")
        if status != 200:
            return Failed(f"HTTP {status}: {_message(data)}", status, pause)
        try:
            return read_verdict(hear(self.wire, data, False).text)
        except InvalidVerdict as error:
            return Failed(f"the judge gave no valid verdict: {error}")


def _cause(trouble: str | None, usage: SessionUsage) -> str | None:
    """The provider's own words say more than what the road made of them."""
    last = usage.events[-1] if usage.events else None
    if trouble is None or last is None or last.status == "success" or not last.error_message:
        return trouble
    status = f"HTTP {last.http_status}: " if last.http_status else ""
    return one_line(f"{status}{last.error_message}")


def _message(data: bytes) -> str:
    return one_line(error_text(read_object(data)) or data.decode(errors="replace"))


def one_line(text: str) -> str:
    """Return a message as one line that is not too long."""
    return " ".join(text.split())[:CAUSE]
