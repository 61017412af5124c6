"""Several prompts in one conversation: one command for all of them, and its stream read prompt by prompt."""

from __future__ import annotations

import marshal
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_wfbench.agents.base import Agent, Invocation, SessionInput
from pytest_wfbench.agents.stream import Final, StreamEvent, ToolCall, ToolResult, Transcript, TurnStart

PROGRAM = ".wfbench/conversation.py"
PROGRAM_SOURCE = Path(__file__).with_name("conversation_main.py")


@dataclass(frozen=True)
class Conversation:
    """What an agent is told, one prompt after the other. ``mark`` ends each of its streams, and nobody can guess it."""

    told: tuple[SessionInput, ...]
    mark: bytes = field(default_factory=lambda: secrets.token_hex(16).encode(), repr=False)

    def start(self, agent: Agent) -> Invocation:
        """Say how all of it is started. One prompt needs no more than the agent itself."""
        turns = [agent.invocation(told) for told in self.told]
        if len(turns) == 1:
            return turns[0]
        words = [word for turn in turns for word in (str(len(turn.argv)), *turn.argv)]
        return Invocation(
            argv=("python3", "-I", "-S", "-B", f"{self.told[0].home}/{PROGRAM}", *words),
            env=turns[0].env,
            stdin=marshal.dumps((self.mark, [turn.stdin for turn in turns])),
            files={PROGRAM: PROGRAM_SOURCE.read_bytes(), **{k: v for turn in turns for k, v in turn.files.items()}},
        )

    def read(self, agent: Agent, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read the whole stream into one transcript, in which every prompt but the first begins a turn."""
        if len(self.told) == 1:
            return agent.read(stdout, exit_status)
        return joined([agent.read(data, status) for data, status in self._parts(stdout)])

    def _parts(self, stdout: bytes) -> Iterator[tuple[bytes, int | None]]:
        """Yield what was written for each prompt, and the exit status: none for one that did not come to its end."""
        pieces = re.split(rb"\n" + re.escape(self.mark) + rb" (\d{1,3})\n", stdout, maxsplit=len(self.told))
        ended = [(data, int(status)) for data, status in zip(pieces[:-1:2], pieces[1::2], strict=True)]
        yield from ended
        rest, failed = pieces[-1], bool(ended and ended[-1][1])
        if rest or (len(ended) < len(self.told) and not failed):
            yield rest, None


def joined(parts: Sequence[Transcript]) -> Transcript:
    """Make one transcript of those of all prompts. Ids are told apart; it ends as its first failure did, if any."""
    events = [event for number, part in enumerate(parts) for event in _events(number, part)]
    finals = [part.final for part in parts if part.final is not None]
    last = next((final for final in finals if final.status == "error"), finals[-1] if finals else None)
    fault = next((part.fault for part in parts if part.fault), None)
    return Transcript(events=(*events, *([last] if last else [])), fault=fault)


def _events(number: int, part: Transcript) -> Iterator[StreamEvent]:
    if number:
        yield TurnStart(number=number)
    for event in part.events:
        if isinstance(event, ToolCall | ToolResult) and number:
            yield event.model_copy(update={"id": f"{number}.{event.id}"})
        elif not isinstance(event, Final):
            yield event
