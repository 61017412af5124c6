"""From answers as they pass to cassettes on the disk, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_wfbench.evidence.event import Claims, Event
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse
from pytest_wfbench.gateway.api import Labels, OpenRequest
from pytest_wfbench.gateway.calls import Calls, Session, Target
from pytest_wfbench.gateway.cassette import Cassette, Failure, Tool, Turn, load_cassettes
from pytest_wfbench.gateway.keys import Claim
from pytest_wfbench.gateway.record import Recording
from pytest_wfbench.gateway.replay import FORMS, Replay
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.gateway.tape import SILENCE, Tape, Voice, file_name, together
from pytest_wfbench.gateway.upstream import Cut, Upstream, UpstreamAnswer, UpstreamRequest
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES

LABELS = Labels(task="t", variation=2, arm="a", session="work", run=3, agent="mini")
REQUEST = OpenRequest(cell_id="cell", labels=LABELS, models=("openai/m",), seconds=9)
KEY = "sk-wf-1-0123456789abcdef"
USAGE = Reported(total_input=9, cache_read_input=2, output=4)
PROVIDERS = {ANTHROPIC: "anthropic", CHAT: "openai", RESPONSES: "openai"}
PATHS = {ANTHROPIC: "/v1/messages", CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses"}
ROOT = Path("/unused")
CALL = {"name": "bash", "input": {"command": "ls"}}


class NullSink:
    def write(self, event: Event) -> None: ...

    def sync(self) -> None: ...


@dataclass
class Act:
    """What the provider does: answers with a turn; breaks off after ``cut`` bytes; hangs after as many."""

    turn: Turn
    cut: int | None = None
    hang: int | None = None
    unreachable: bool = False


@dataclass
class Provider:
    """Answers one act after the other, with ids as a provider gives them."""

    acts: list[Act]
    number: int = 0

    @asynccontextmanager
    async def answer(self, request: UpstreamRequest) -> AsyncIterator[UpstreamAnswer]:
        act = self.acts.pop(0)
        self.number += 1
        if act.unreachable:
            raise Cut("no route")
        form, error = FORMS[request.wire], act.turn.error
        if error:
            headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
            body = json.dumps(form.error(error.type, error.message)).encode()
            yield UpstreamAnswer(error.status, self._send([body], act), headers=headers)
            return
        tools = tuple(ToolUse(f"call_{self.number}x{n}", t.name, t.input, t.raw) for n, t in enumerate(act.turn.tools))
        stop = act.turn.stop or ("tool_use" if tools else "end_turn")
        said = Answer(str(self.number), act.turn.model or "m", 1, act.turn.text, tools, act.turn.usage or USAGE, stop)
        parts = (
            list(form.stream(said, Asked())) if request.streamed else [json.dumps(form.whole(said, Asked())).encode()]
        )
        yield UpstreamAnswer(200, self._send(parts, act), streamed=request.streamed)

    async def _send(self, parts: Sequence[bytes], act: Act) -> AsyncIterator[bytes]:
        for number, part in enumerate(parts):
            if number == act.cut:
                raise Cut("broke off")
            if number == act.hang:
                await asyncio.sleep(3600)
            yield part


@dataclass
class Studio:
    """A recording session over a provider, whose agent asks the next question of its history each time."""

    directory: Path
    wire: str
    secrets: tuple[str, ...] = ()
    recording: Recording = field(init=False)
    session: Session = field(init=False)

    def __post_init__(self) -> None:
        self.recording = Recording(self.secrets)
        self.recording.begin(self.directory)
        self.session = new_session(Target(PROVIDERS[self.wire], "m"))
        self.recording.open(self.session, KEY)

    @property
    def path(self) -> Path:
        return self.directory / file_name("cell", "work")

    def cassette(self) -> Cassette:
        (script,) = load_cassettes(self.directory).scripts
        return script.cassette

    def play(self, upstream: Upstream, *histories: dict[str, Any], stream: bool = False) -> list[bytes]:
        return asyncio.run(ask_all(self.recording.upstream(upstream), self.session, self.wire, histories, stream))


def new_session(target: Target) -> Session:
    return Session(REQUEST, Claim("cell", "work", "door", (), 0), "s", {"openai/m": target}, NullSink())


async def ask_all(
    upstream: Upstream, session: Session, wire: str, histories: Sequence[dict[str, Any]], stream: bool
) -> list[bytes]:
    return [await ask(upstream, session, wire, history, stream) for history in histories]


async def ask(upstream: Upstream, session: Session, wire: str, history: dict[str, Any], stream: bool) -> bytes:
    call = Calls().open(session, session.targets["openai/m"], "openai/m", Claims(), "main")
    body = {
        "model": "m",
        "stream": stream,
        **({"stream_options": {"include_usage": True}} if stream else {}),
        **history,
    }
    request = UpstreamRequest(call, wire, PATHS[wire], {}, body, b"")
    got = b""
    with suppress(Cut):
        async with upstream.answer(request) as answer:
            async for chunk in answer.chunks:
                got += chunk
    return got


def history(wire: str, turns: int, opening: str = "go") -> dict[str, Any]:
    """A request after so many answers."""
    said: list[dict[str, Any]] = [{"role": "user", "content": opening}]
    for _ in range(turns):
        said += [{"role": "assistant", "content": "…"}, {"role": "user", "content": "on"}]
    return {"input" if wire == RESPONSES else "messages": said}


Open = Callable[..., Studio]


@pytest.fixture
def studio(tmp_path: Path) -> Open:
    return lambda wire=CHAT, secrets=(): Studio(tmp_path / "tape", wire, secrets)


OK = Turn(text="yes", usage=USAGE)
LIMIT = Turn(error=Failure(status=429, type="rate_limit_error", message="slow down", retry_after=7))
BROKEN = Turn(error=Failure(status=500, message="oh"))


class TestTurns:
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("wire", FORMS)
    def test_a_conversation(self, studio: Open, wire: str, stream: bool) -> None:
        """Text, tool calls, usage and stops become turns in their order, bound to the session in all six labels."""
        usage = Reported(ordinary_input=3, cache_read_input=2, cache_write_input=1, output=4)
        reported = (
            usage if wire == ANTHROPIC else Reported(total_input=6, cache_read_input=2, cache_write_input=1, output=4)
        )
        first = Turn(
            text="a\nb ", tools=(Tool(name="bash", input={"n": 1.5, "yes": "no"}), Tool(name="x")), usage=usage
        )
        last = Turn(text="end", usage=usage, stop="max_tokens", model="other")
        made = studio(wire)
        made.play(Provider([Act(first), Act(last)]), history(wire, 0), history(wire, 1), stream=stream)
        cassette = made.cassette()
        assert (cassette.provider, cassette.model) == (PROVIDERS[wire], "m")
        assert cassette.match.model_dump() == LABELS.model_dump()
        assert cassette.turns == tuple(turn.model_copy(update={"usage": reported}) for turn in (first, last))

    def test_nothing_asked(self, studio: Open) -> None:
        """A session that asks for nothing has a cassette from the start, which says so."""
        assert studio().cassette().turns == (SILENCE,)

    def test_earlier_attempts_are_kept(self, studio: Open) -> None:
        """A session that is opened again begins anew; what was recorded of it before is put aside, not lost."""
        texts = []
        for _ in range(3):
            made = studio()
            made.play(Provider([Act(Turn(text=f"attempt {len(texts)}", usage=USAGE))]), history(CHAT, 0))
            texts.append(made.path.read_text())
        aside = [made.path.with_name(f"{made.path.name}.attempt-{number}").read_text() for number in (1, 2)]
        assert [*aside, made.path.read_text()] == texts
        assert made.cassette().turns[0].text == "attempt 2"

    def test_sides(self, studio: Open) -> None:
        """Subagents of one name have turns of their own each, by their prompts; a replay tells them apart too."""
        spawns = tuple(
            Tool(name="task", input={"subagent_type": "scout", "prompt": prompt}) for prompt in ("find a", "find ab")
        )
        acts = [Turn(tools=spawns, usage=USAGE), Turn(text="about ab", usage=USAGE), Turn(text="about a", usage=USAGE)]
        asked = [history(CHAT, 0), history(CHAT, 0, "now: find ab"), history(CHAT, 0, "now: find a")]
        made = studio()
        live = made.play(Provider([Act(turn) for turn in acts]), *asked)
        assert [turn.on for turn in made.cassette().turns] == [None, "subagent:scout#2", "subagent:scout"]
        assert [said(body) for body in replayed(made, asked)] == [said(body) for body in live]


class TestStumbles:
    @pytest.mark.parametrize(
        ("acts", "expected"),
        [
            ([LIMIT, LIMIT, OK], OK.model_copy(update={"error": LIMIT.error.model_copy(update={"times": 2})})),
            ([LIMIT, LIMIT], LIMIT),
            ([LIMIT, BROKEN, OK], OK.model_copy(update={"first": (LIMIT, BROKEN)})),
            ([OK, OK], OK.model_copy(update={"first": (OK,)})),
            ([BROKEN], BROKEN),
        ],
        ids=["times", "always", "several", "answered-twice", "once-for-all"],
    )  # fmt: skip
    def test_one_request_many_answers(self, studio: Open, acts: list[Turn], expected: Turn) -> None:
        """What one request got one after the other is one turn that answers so again, in a replay as well."""
        made = studio()
        asked = [history(CHAT, 0)] * len(acts)
        live = made.play(Provider([Act(turn) for turn in acts]), *asked)
        assert made.cassette().turns == (expected,)
        assert [said(body) for body in replayed(made, asked)] == [said(body) for body in live]

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("wire", FORMS)
    def test_cut(self, studio: Open, wire: str, stream: bool) -> None:
        """An answer that broke off is cut, with as much as came; the repeated one follows it."""
        made = studio(wire)
        cut = Act(OK, cut=3 if stream else 0)
        made.play(Provider([cut, Act(OK)]), history(wire, 0), history(wire, 0), stream=stream)
        (turn,) = made.cassette().turns
        assert ([before.cut for before in turn.first], turn.cut, turn.text) == ([True], False, "yes")

    def test_no_provider(self, studio: Open) -> None:
        """A provider that cannot be reached is an error of a gateway."""
        made = studio()
        made.play(Provider([Act(OK, unreachable=True)]), history(CHAT, 0))
        assert made.cassette().turns == (Turn(error=Failure(status=502, message="no route")),)

    def test_no_end(self, studio: Open) -> None:
        """An answer that had not ended when its session did is one that never comes."""

        async def scenario(made: Studio) -> None:
            upstream = made.recording.upstream(Provider([Act(OK, hang=2)]))
            asking = asyncio.create_task(ask(upstream, made.session, CHAT, history(CHAT, 0), stream=True))
            await asyncio.sleep(0.1)
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

        made = studio()
        asyncio.run(scenario(made))
        (turn,) = made.cassette().turns
        assert (turn.cut, turn.delay) == (True, 3600)

    def test_before_the_end(self, studio: Open) -> None:
        """What was said is in the file before the end of the answer is told to anybody."""

        async def scenario(made: Studio) -> str:
            call = Calls().open(made.session, made.session.targets["openai/m"], "openai/m", Claims(), "main")
            request = UpstreamRequest(call, CHAT, PATHS[CHAT], {}, {"model": "m", **history(CHAT, 0)}, b"")
            async with made.recording.upstream(Provider([Act(OK)])).answer(request) as answer:
                async for _ in answer.chunks:
                    pass
                return made.path.read_text()

        assert '"yes"' in asyncio.run(scenario(studio()))

    def test_a_full_disk(self, studio: Open) -> None:
        """An answer that cannot be written reaches its client, and is told: no further session may be opened."""
        made = studio()
        made.path.unlink()
        made.directory.rmdir()
        (got,) = made.play(Provider([Act(OK)]), history(CHAT, 0))
        assert said(got) == "yes"
        assert made.recording.failed is not None


class TestSecrets:
    def test_none_is_written(self, studio: Open) -> None:
        """Keys of providers and of the session, and what looks like one, are in no part of a cassette."""
        secret = "correct-horse-battery-staple"
        all_of_them = f"{secret} {KEY} ghp_{'a1' * 15}"
        turn = Turn(
            text=all_of_them,
            tools=(
                Tool(name="w", input={"c": all_of_them, "password": "hunter22"}),
                Tool(name=secret, raw=all_of_them),
            ),
            usage=USAGE,
        )
        failed = Turn(error=Failure(status=400, message=f"bad key {all_of_them}"))
        made = studio(secrets=(secret,))
        made.play(Provider([Act(turn), Act(failed)]), history(CHAT, 0), history(CHAT, 1))
        text = made.path.read_text()
        assert not [part for part in (*all_of_them.split(), "hunter22") if part in text]
        assert text.count("[redacted]") >= 5


class TestText:
    @settings(max_examples=60, deadline=None)
    @given(
        st.text(), st.dictionaries(st.text(max_size=9), st.text() | st.floats(allow_nan=False, allow_infinity=False))
    )
    def test_any_text_survives(
        self, tmp_path_factory: pytest.TempPathFactory, text: str, given_: dict[str, Any]
    ) -> None:
        """Whatever a model says is read back from the file as it was, but for characters that no file can hold."""
        directory = tmp_path_factory.mktemp("tape")
        tape = Tape(directory / "a.yaml", LABELS, Voice("openai", "m"), lambda value: value)
        turn = Turn(text=text.replace("\0", ""), tools=(Tool(name="t", input=without_null(given_)),), usage=Reported())
        place = (None, 0)
        tape.keep(place, tape.take(place), turn)
        (script,) = load_cassettes(directory).scripts
        assert script.cassette.turns == (turn,)

    @pytest.mark.parametrize(
        "text",
        ["yes", "1.0e5", "010", "1:30", "~", "", " x ", "- a", "<<", "a: b", "\t", "\x85\ufeff\u2028", "# c\n\n b\n"],
    )
    def test_odd_text(self, tmp_path: Path, text: str) -> None:
        """Text that YAML would take for something else stays text, as a key too."""
        tape = Tape(tmp_path / "a.yaml", LABELS, Voice("openai", "m"), Redactor().value)
        turn = Turn(text=text, tools=(Tool(name="t", input={text: [text, {text: text}]}),), usage=Reported())
        tape.keep((None, 0), tape.take((None, 0)), turn)
        assert load_cassettes(tmp_path).scripts[0].cassette.turns == (turn,)

    def test_together_is_idempotent(self) -> None:
        """One answer is itself."""
        assert together([OK]) == OK


def without_null(values: dict[str, Any]) -> dict[str, Any]:
    return {k.replace("\0", ""): v.replace("\0", "") if isinstance(v, str) else v for k, v in values.items()}


def replayed(made: Studio, asked: Sequence[dict[str, Any]]) -> list[bytes]:
    (script,) = load_cassettes(made.directory).scripts
    session = new_session(Target("openai", "m", script))
    return asyncio.run(ask_all(Replay(), session, made.wire, asked, stream=False))


def said(body: bytes) -> str:
    """What a whole chat answer says, or its error."""
    document = json.loads(body)
    return (
        str(document["error"]["message"]) if "error" in document else str(document["choices"][0]["message"]["content"])
    )
