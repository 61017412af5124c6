"""Recording: an upstream whose answers are written down as cassettes while they pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.gateway.calls import Session
from pytest_wfbench.gateway.cassette import MAX_DELAY, Failure, Turn
from pytest_wfbench.gateway.conversation import read_conversation
from pytest_wfbench.gateway.heard import hear, reported
from pytest_wfbench.gateway.tape import Place, Take, Tape, Voice, file_name
from pytest_wfbench.gateway.upstream import Cut, Upstream, UpstreamAnswer, UpstreamRequest
from pytest_wfbench.space import because
from pytest_wfbench.wires import Reading, StreamReader, read_object, read_whole

TITLE = "title"
COUNT_PATH = "/count_tokens"
# As much of an answer is kept to be read as the meter keeps.
ANSWER_LIMIT = 64 << 20
MESSAGE_CLIP = 500
# What an error becomes that a cassette has no status for: a redirect, or no answer at all.
NO_ANSWER = 502
UNPLAYED = frozenset({"preflight"})


@dataclass
class Recording:
    """The cassettes that a sweep's sessions become. ``directory`` is none where nothing is recorded.

    ``failed`` says why an answer could not be written, once one could not: no new session may be opened then.
    """

    secrets: tuple[str, ...]
    directory: Path | None = None
    failed: str | None = None
    tapes: dict[str, Tape] = field(default_factory=dict)

    def begin(self, directory: Path | None) -> None:
        """Record from now on. Raises OSError."""
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory

    def open(self, session: Session, key: str) -> None:
        """Have a session recorded; ``key`` is its own, which no cassette may hold."""
        # A judge's sign of life is labelled as one of its cells' sessions.
        unplayed = UNPLAYED & {session.request.labels.session, session.request.cell_id}
        if self.directory is None or session.sink is None or unplayed:
            return
        path = self.directory / file_name(session.request.cell_id, session.request.labels.session)
        target = session.targets[session.request.models[0]]
        redact = Redactor((*self.secrets, key)).value
        tape = Tape(path, session.request.labels, Voice(target.provider, target.model), redact)
        try:
            tape.begin()
        except OSError as error:
            self.failed = self.failed or because(error, self.directory)
        self.tapes[session.claim.door] = tape

    def close(self, session: Session) -> None:
        """Forget a session: what it asks from now on is still written by those that hold its tape."""
        self.tapes.pop(session.claim.door, None)

    def upstream(self, behind: Upstream) -> Upstream:
        """Return an upstream that answers as the one behind it, and is recorded."""
        return _Recorded(self, behind)


@dataclass(frozen=True)
class _Recorded:
    recording: Recording
    behind: Upstream

    @asynccontextmanager
    async def answer(self, request: UpstreamRequest) -> AsyncIterator[UpstreamAnswer]:
        tape = self.recording.tapes.get(request.call.session.claim.door)
        if tape is None or request.path.endswith(COUNT_PATH):
            async with self.behind.answer(request) as answer:
                yield answer
            return
        listener = Listener(self.recording, tape, request)
        try:
            async with self.behind.answer(request) as answer:
                yield replace(answer, chunks=listener.passing(answer))
        except Cut as error:
            await listener.settle(_error(NO_ANSWER, {}, str(error)))
            raise
        finally:
            listener.abandon()


class Listener:
    """Hears one answer as it passes, and enters it on the tape: once, however it ends."""

    def __init__(self, recording: Recording, tape: Tape, request: UpstreamRequest) -> None:
        self._recording, self._tape, self._request = recording, tape, request
        self._place = place_of(tape, request)
        self._take: Take = tape.take(self._place)
        self._heard = bytearray()
        self._settled = False
        self._streamed = False

    async def passing(self, answer: UpstreamAnswer) -> AsyncIterator[bytes]:
        """Yield the answer's bytes; what was said is on the disk before its end is told."""
        self._streamed = answer.streamed
        try:
            async for chunk in answer.chunks:
                if len(self._heard) < ANSWER_LIMIT:
                    self._heard += chunk
                yield chunk
        except Cut:
            await self._settle_as(answer, cut=True)
            raise
        await self._settle_as(answer, cut=False)

    async def _settle_as(self, answer: UpstreamAnswer, cut: bool) -> None:
        if not 200 <= answer.status < 300:
            await self.settle(_error(answer.status, answer.headers, self._heard))
        else:
            await self.settle(None, cut)

    async def settle(self, turn: Turn | None, cut: bool = False) -> None:
        """Enter an error, or what was heard."""
        if not self._settled:
            self._settled = True
            await asyncio.to_thread(self._keep, turn, cut)

    def abandon(self) -> None:
        """Enter an answer that never ended as one that never comes: nobody waited for it."""
        if not self._settled:
            self._settled = True
            self._keep(None, cut=True, delay=MAX_DELAY)

    def _keep(self, turn: Turn | None, cut: bool, delay: float = 0.0) -> None:
        try:
            turn = turn or self._said(cut, delay)
            self._tape.keep(self._place, self._take, turn)
        except OSError as error:
            self._recording.failed = self._recording.failed or because(error, self._tape.path.parent)

    def _said(self, cut: bool, delay: float) -> Turn:
        data, wire = bytes(self._heard), self._request.wire
        reading, heard = _read(wire, data, self._streamed), hear(wire, data, self._streamed)
        broken = cut or not reading.finished or reading.error is not None
        usual = "tool_use" if heard.tools else "end_turn"
        return Turn(
            text=heard.text,
            tools=heard.tools,
            usage=reported(wire, reading.usage),
            stop=None if heard.stop == usual or broken else heard.stop,
            model=reading.model if reading.model != self._tape.voice.model else None,
            cut=broken,
            delay=delay,
        )


def _read(wire: str, data: bytes, streamed: bool) -> Reading:
    if not streamed:
        return read_whole(data)
    reader = StreamReader(wire)
    reader.feed(data)
    return reader.reading()


def place_of(tape: Tape, request: UpstreamRequest) -> Place:
    """Return which conversation a request continues, and how many answers precede it, as a replay will see it.

    A conversation that a recorded tool call started is a subagent's, also where its client does not say so.
    """
    spoken = read_conversation(request.wire, request.body)
    side = TITLE if request.call.conversation == TITLE else tape.side(spoken.opening)
    if side is not None and request.call.conversation == "main":
        request.call.conversation = "subagent"
    return side, spoken.turns


def _error(status: int, headers: Mapping[str, str], said: bytes | bytearray | str) -> Turn:
    """Return an error as a turn; ``said`` is the body it came with, or why there was none."""
    body = "" if isinstance(said, str) else bytes(said).decode(errors="replace")
    inner = read_object(body.encode()).get("error")
    detail = inner if isinstance(inner, dict) else {}
    text = said if isinstance(said, str) else str(detail.get("message") or inner or body)
    kind = detail.get("type")
    wait = headers.get("retry-after", "")
    return Turn(
        error=Failure(
            status=status if 400 <= status < 600 else NO_ANSWER,
            type=kind if isinstance(kind, str) and kind else "api_error",
            message=text[:MESSAGE_CLIP],
            retry_after=int(wait) if wait.isascii() and wait.isdigit() else None,
        )
    )
