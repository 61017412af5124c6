"""Answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pytest_wfbench.clock import now
from pytest_wfbench.gateway.answers.anthropic import AnthropicForm
from pytest_wfbench.gateway.answers.base import Answer, Asked, Form, ToolUse, compact
from pytest_wfbench.gateway.answers.chat import ChatForm
from pytest_wfbench.gateway.answers.responses import ResponsesForm
from pytest_wfbench.gateway.cassette import Failure, Script, Turn
from pytest_wfbench.gateway.conversation import Conversation, read_conversation, tool_id
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.gateway.upstream import Cut, UpstreamAnswer, UpstreamRequest
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

FORMS: Mapping[str, Form] = {ANTHROPIC: AnthropicForm(), CHAT: ChatForm(), RESPONSES: ResponsesForm()}
TITLE = "title"
NOTHING = Reported(ordinary_input=0, cache_read_input=0, cache_write_input=0, output=0)
# What a request for a title gets where the script has none: it is answered, and adds nothing.
DEFAULT_TITLE = Turn(text="Replayed session", usage=NOTHING)
BYTES_PER_TOKEN = 4
# A conversation, and a turn of it.
Place = tuple[str | None, int]


def side_conversation(script: Script, conversation: Conversation, title: bool) -> str | None:
    """Return which of the script's conversations a request continues: none is the main one."""
    return TITLE if title else script.subagent_of(conversation.opening)


def estimate_tokens(raw: bytes) -> int:
    """Return a local estimate of the tokens of a request body."""
    return max(1, len(raw) // BYTES_PER_TOKEN)


def _exhausted(script: Script, side: str | None, turns: int) -> Failure:
    name = f" of {side}" if side else ""
    return Failure(
        status=400,
        type="cassette_exhausted",
        message=f"cassette {script.name} has {turns} turns{name}; one more was asked for",
    )


class Replay:
    """The upstream that plays the script of the call's target."""

    @asynccontextmanager
    async def answer(self, request: UpstreamRequest) -> AsyncIterator[UpstreamAnswer]:
        """Answer with the turn that the history asks for; a token count with an estimate."""
        if request.path.endswith("/count_tokens"):
            yield UpstreamAnswer(200, _send([compact({"input_tokens": estimate_tokens(request.raw)})]))
            return
        script = request.call.target.script
        assert script is not None
        conversation = read_conversation(request.wire, request.body)
        side = side_conversation(script, conversation, request.call.conversation == TITLE)
        turns = script.turns(side) or ((DEFAULT_TITLE,) if side == TITLE else ())
        number = 0 if turns == (DEFAULT_TITLE,) else conversation.turns
        form = FORMS[request.wire]
        if number >= len(turns):
            yield _failed(form, _exhausted(script, side, len(turns)))
            return
        place = (side, number)
        turn = _due(turns[number], request, place)
        await asyncio.sleep(turn.delay)
        if turn.error and _strikes(turn.error, request, place):
            yield _failed(form, turn.error)
            return
        yield _answered(form, turn, number, request, conversation)


def _due(turn: Turn, request: UpstreamRequest, place: Place) -> Turn:
    """Return what the request gets this time: what comes first is used up first, in each session anew."""
    given = request.call.session.given
    given[place] += 1
    return turn.first[given[place] - 1] if given[place] <= len(turn.first) else turn


def _strikes(failure: Failure, request: UpstreamRequest, place: Place) -> bool:
    """Whether a scripted error happens this time: ``times`` is counted per session and turn."""
    failures = request.call.session.failures
    if failure.times is None:
        return True
    failures[place] += 1
    return failures[place] <= failure.times


def _failed(form: Form, failure: Failure) -> UpstreamAnswer:
    headers = {} if failure.retry_after is None else {"retry-after": str(failure.retry_after)}
    body = compact(form.error(failure.type, failure.message))
    return UpstreamAnswer(failure.status, _send([body]), headers=headers)


def _answered(
    form: Form, turn: Turn, number: int, request: UpstreamRequest, conversation: Conversation
) -> UpstreamAnswer:
    asked = Asked(conversation.tools, _stream_usage(request.body))
    answer = _compose(form, turn, number, request)
    if request.streamed:
        events = form.stream(answer, asked)
        return UpstreamAnswer(200, _send(_until_end(form, events) if turn.cut else events, turn.cut), streamed=True)
    body = compact(form.whole(answer, asked))
    return UpstreamAnswer(200, _send([body[: len(body) // 2]] if turn.cut else [body], turn.cut))


def _stream_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _compose(form: Form, turn: Turn, number: int, request: UpstreamRequest) -> Answer:
    script = request.call.target.script
    assert script is not None
    name = f"{request.call.id}{request.call.attempts}"
    tools = tuple(
        ToolUse(tool_id(form.tool_prefix, number, index, name), tool.name, tool.input, tool.raw)
        for index, tool in enumerate(turn.tools)
    )
    stop = turn.stop or ("tool_use" if tools else "end_turn")
    model = turn.model or script.cassette.model
    return Answer(name, model, int(now().timestamp()), turn.text, tools, turn.usage or Reported(), stop)


def _until_end(form: Form, events: Iterable[bytes]) -> Iterable[bytes]:
    for event in events:
        if form.closes(event):
            return
        yield event


async def _send(chunks: Iterable[bytes], cut: bool = False) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if cut:
        raise Cut("the script cuts the answer here")
