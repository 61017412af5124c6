"""The judge behind a door: a real socket, with a scripted model at its other end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pytest_wfbench.gateway.api import Door, GatewayLost, GatewayRefused, Labels, OpenRequest, SessionUsage
from pytest_wfbench.scoring.judge import PAUSES, WISHES, Judge
from pytest_wfbench.scoring.judge_prompt import Told
from pytest_wfbench.scoring.verdict import Verdict
from pytest_wfbench.wires import CHAT, RESPONSES
from tests.serving import Request, Response, serve

LABELS = Labels(task="t", arm="a", session="judge", run=1, agent="mini")
TOLD = Told("be strict", "judge this")
YES = '{"pass": true, "score": 1, "reason": "It is right."}'
NO = '{"pass": false, "score": 0, "reason": "It is wrong."}'


def chat(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}


def responses(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [part]}]}


Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass
class Scripted:
    """A gateway with one door. ``answers`` are given in turn, the last one for ever."""

    path: Path
    answers: list[Answer]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    opened: list[OpenRequest] = field(default_factory=list)
    closed: int = 0
    refuses: Exception | None = None

    def open(self, request: OpenRequest) -> Door:
        if self.refuses:
            raise self.refuses
        self.opened.append(request)
        return Door(cell_id=request.cell_id, session="judge", socket=self.path, key="the-judges-own-key")

    def close(self, door: Door) -> SessionUsage:
        self.closed += 1
        return SessionUsage()

    def answer(self, request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer the-judges-own-key"
        self.asked.append((request.path, json.loads(request.body)))
        status, value, *more = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return Response(data, status=status, headers=more[0] if more else {})


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    with ExitStack() as servers:

        def make(*answers: Answer) -> Scripted:
            gateway = Scripted(Path(f"/tmp/wfb-judge-{uuid4().hex[:8]}"), list(answers))
            servers.callback(gateway.path.unlink, missing_ok=True)
            servers.enter_context(serve(gateway.answer, gateway.path))
            return gateway

        yield make


def judge(**fields: Any) -> tuple[Judge, list[float]]:
    slept: list[float] = []
    return Judge("replay/judge", fields.pop("wire", CHAT), sleep=slept.append, **fields), slept


class TestAsking:
    def test_a_verdict(self, scripted: Callable[..., Scripted]) -> None:
        """One request through a door of its own, labelled as the judge's and closed again, gives one verdict."""
        gateway = scripted((200, chat(YES)))
        found = judge()[0].judge(TOLD, gateway, "cell-1", LABELS)
        assert found.verdicts == (Verdict(True, 1.0, "It is right."),)
        assert found.trouble is None
        assert (gateway.opened[0].labels, gateway.opened[0].cell_id, gateway.closed) == (LABELS, "cell-1", 1)
        path, body = gateway.asked[0]
        assert path == "/v1/chat/completions"
        assert body["messages"] == [
            {"role": "system", "content": "be strict"}, {"role": "user", "content": "judge this"},
        ]  # fmt: skip
        assert body["temperature"] == 0
        assert body["response_format"]["json_schema"]["schema"]["required"] == ["pass", "score", "reason"]

    def test_over_responses(self, scripted: Callable[..., Scripted]) -> None:
        """A codex judge is asked in the Responses format."""
        gateway = scripted((200, responses(NO)))
        found = judge(wire=RESPONSES)[0].judge(TOLD, gateway, "c", LABELS)
        assert found.verdicts == (Verdict(False, 0.0, "It is wrong."),)
        path, body = gateway.asked[0]
        assert (path, body["instructions"], body["input"]) == ("/v1/responses", "be strict", "judge this")
        assert body["text"]["format"]["type"] == "json_schema"

    def test_votes(self, scripted: Callable[..., Scripted]) -> None:
        """Each vote is a request of its own, behind one door."""
        gateway = scripted((200, chat(YES)), (200, chat(NO)), (200, chat(YES)))
        found = judge(votes=3)[0].judge(TOLD, gateway, "c", LABELS)
        assert [verdict.passed for verdict in found.verdicts] == [True, False, True]
        assert len(gateway.opened) == 1

    def test_what_a_model_cannot_is_not_asked_again(self, scripted: Callable[..., Scripted]) -> None:
        """A model that refuses a schema or a temperature is asked for less, at once and from then on."""
        gateway = scripted((400, {"error": {"message": "no json_schema"}}), (422, {}), (200, chat(YES)))
        judging, slept = judge()
        assert judging.judge(TOLD, gateway, "c", LABELS).verdicts
        assert judging.judge(TOLD, gateway, "c", LABELS).verdicts
        assert [("response_format" in b, "temperature" in b, "max_tokens" in b) for _, b in gateway.asked] == [
            (True, True, True), (False, True, True), (False, False, True), (False, False, True),
        ]  # fmt: skip
        assert not slept


class TestFailing:
    @pytest.mark.parametrize(
        "answer",
        [
            (200, chat("I think it passes.")),
            (200, chat('{"pass": true, "score": 0, "reason": "It is right."}')),
            (200, chat("")),
            (200, b"not JSON"),
            (200, {"choices": []}),
            (402, {"error": {"message": "no credit left"}}),
            (500, b"\xff\xfe"),
        ],
    )
    def test_is_asked_twice_again_then_given_up(self, scripted: Callable[..., Scripted], answer: Answer) -> None:
        """Whatever is no verdict is asked for twice again, with pauses that grow, and is then trouble."""
        gateway = scripted(answer)
        judging, slept = judge(ask_less=len(WISHES) - 1)
        found = judging.judge(TOLD, gateway, "c", LABELS)
        assert found.verdicts == ()
        assert found.trouble
        assert len(gateway.asked) == 3
        assert slept == list(PAUSES)

    def test_an_error_is_told_in_the_providers_words(self, scripted: Callable[..., Scripted]) -> None:
        """The cause names the status and what the provider said."""
        found = judge()[0].judge(TOLD, scripted((402, {"error": {"message": "no credit\nleft"}})), "c", LABELS)
        assert found.trouble == "HTTP 402: no credit left"

    def test_a_second_try_may_do(self, scripted: Callable[..., Scripted]) -> None:
        """What a judge says at its third try counts as at its first; the answer's own pause is kept."""
        gateway = scripted((503, {}, {"retry-after": "7"}), (200, chat("no")), (200, chat(YES)))
        judging, slept = judge()
        found = judging.judge(TOLD, gateway, "c", LABELS)
        assert (len(found.verdicts), found.trouble) == (1, None)
        assert slept == [7.0, PAUSES[1]]

    def test_one_vote_that_fails_is_trouble(self, scripted: Callable[..., Scripted]) -> None:
        """Of three votes all must be had: no two of them decide alone."""
        gateway = scripted((200, chat(YES)), (200, chat(YES)), (500, {}))
        found = judge(votes=3)[0].judge(TOLD, gateway, "c", LABELS)
        assert found.trouble == "HTTP 500: {}"

    def test_nobody_listens(self, scripted: Callable[..., Scripted]) -> None:
        """A socket that is gone is trouble, not a crash; the door is closed all the same."""
        gateway = scripted((200, chat(YES)))
        gateway.path = Path("/tmp/wfb-nobody")
        found = judge()[0].judge(TOLD, gateway, "c", LABELS)
        assert "no answer" in str(found.trouble)
        assert gateway.closed == 1

    def test_a_door_that_is_refused(self, scripted: Callable[..., Scripted]) -> None:
        """Where no door is opened, the gateway's reason is the trouble; a gateway that is lost is another matter."""
        gateway = scripted((200, chat(YES)))
        gateway.refuses = GatewayRefused("no cassette fits")
        assert judge()[0].judge(TOLD, gateway, "c", LABELS).trouble == "no cassette fits"
        gateway.refuses = GatewayLost("it died")
        with pytest.raises(GatewayLost):
            judge()[0].judge(TOLD, gateway, "c", LABELS)
