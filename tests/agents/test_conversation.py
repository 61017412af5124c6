"""Several prompts in one conversation, led by a program of the harness's in one home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_wfbench.agents.base import Agent, Invocation, Runtime, SessionInput, SkillSupport, Traits
from pytest_wfbench.agents.claude_code import ClaudeCodeAgent
from pytest_wfbench.agents.codex import CodexAgent
from pytest_wfbench.agents.conversation import PROGRAM, PROGRAM_SOURCE, Conversation, joined
from pytest_wfbench.agents.events import read_events, seal
from pytest_wfbench.agents.mini import MiniAgent
from pytest_wfbench.agents.opencode import OpencodeAgent
from pytest_wfbench.agents.stream import Final, TextEvent, ToolCall, ToolResult, Transcript, TurnStart

OK = {"type": "final", "status": "ok"}
# Root's powers see through what is closed, and no sandbox has them.
LESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


@dataclass(frozen=True)
class Shell:
    """An agent that is a shell: its prompt is the script, its events are what the script writes."""

    name: str = "shell"
    uses_model: bool = False
    skills: SkillSupport = "none"
    traits: Traits = field(default_factory=lambda: Traits(converses=True))

    def find(self, model: str, directory: Path) -> Runtime:
        return Runtime("1")

    def invocation(self, session: SessionInput) -> Invocation:
        return Invocation(("/bin/sh", "-s", str(session.turn)), stdin=session.prompt.encode())

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        events, fault = read_events(stdout)
        return seal(events, fault, exit_status)


def say(*events: Mapping[str, object]) -> str:
    return "\n".join(f"echo '{json.dumps(event)}'" for event in events) + "\n"


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def call(number: str) -> list[dict[str, object]]:
    return [{"type": "tool_call", "id": number, "name": "bash"}, {"type": "tool_result", "id": number}]


def talk(*prompts: str) -> Conversation:
    inputs = (SessionInput(p, "m", "s", 9.0, turn=n, turns=len(prompts)) for n, p in enumerate(prompts))
    return Conversation(tuple(inputs))


def started(conversation: Conversation, agent: Agent, home: Path) -> subprocess.Popen[bytes]:
    start = conversation.start(agent)
    (home / PROGRAM).parent.mkdir(exist_ok=True)
    (home / PROGRAM).write_bytes(start.files[PROGRAM])
    argv = [*LESS, sys.executable, *(word.replace("/home/agent", str(home)) for word in start.argv[1:])]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=home)
    assert process.stdin
    process.stdin.write(start.stdin)
    process.stdin.close()
    return process


def run(home: Path, *prompts: str) -> tuple[Transcript, int]:
    conversation = talk(*prompts)
    process = started(conversation, Shell(), home)
    assert process.stdout
    data = process.stdout.read()
    status = process.wait(20)
    return conversation.read(Shell(), data, status), status


class TestLeading:
    def test_one_after_the_other_in_one_home(self, tmp_path: Path) -> None:
        """Each prompt starts the agent once, where the one before left off; the answer is the last one's."""
        first, second = "echo $1 >> turns\n" + say(text("one"), OK), "echo $1 >> turns\n" + say(text("two"), OK)
        transcript, status = run(tmp_path, first, second, "cat turns >&2\n" + say(text("three"), OK))
        assert (tmp_path / "turns").read_text() == "0\n1\n"
        assert transcript.events == (
            TextEvent(text="one"), TurnStart(number=1), TextEvent(text="two"), TurnStart(number=2),
            TextEvent(text="three"), Final(status="ok"),
        )  # fmt: skip
        assert (transcript.fault, transcript.answer, status) == (None, "three", 0)

    def test_ids_are_told_apart(self, tmp_path: Path) -> None:
        """Agents count their calls anew with each prompt; in the transcript none is called like another."""
        prompt = say(*call("1"), text("done"), OK)
        transcript, _ = run(tmp_path, prompt, prompt)
        assert [event.id for event in transcript.events if isinstance(event, ToolCall | ToolResult)] == [
            "1", "1", "1.1", "1.1",
        ]  # fmt: skip
        assert transcript.tool_calls == {"bash": 2}

    def test_a_failure_ends_it(self, tmp_path: Path) -> None:
        """After a prompt that failed the next one is never given, and the whole ends in that error."""
        failed = say(text("no"), {"type": "final", "status": "error", "error": "it broke"}) + "exit 3\n"
        transcript, status = run(tmp_path, failed, "touch second\n" + say(OK))
        assert (transcript.final, status) == (Final(status="error", error="it broke"), 3)
        assert not (tmp_path / "second").exists()

    def test_an_earlier_error_is_not_made_good(self, tmp_path: Path) -> None:
        """An error that an agent reports and exits 0 with stays the end of the conversation."""
        failed = say({"type": "final", "status": "error", "error": "it broke"})
        transcript, _ = run(tmp_path, failed, say(text("fine"), OK))
        assert transcript.final == Final(status="error", error="it broke")

    def test_a_torn_line_is_still_seen(self, tmp_path: Path) -> None:
        """What ends one prompt's stream does not mend a line that the agent tore."""
        transcript, _ = run(tmp_path, say(OK) + 'printf \'{"type": "text"\'\n', say(text("x"), OK))
        assert transcript.fault == "the last line of the event stream is torn"

    def test_ended_from_outside(self, tmp_path: Path) -> None:
        """A conversation that is killed between or in its prompts is no evidence."""
        conversation = talk(say(text("one"), OK) + "touch there\n", "exec sleep 60\n")
        process = started(conversation, Shell(), tmp_path)
        deadline = time.monotonic() + 20
        while not (tmp_path / "there").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), 9)
        process.kill()
        assert process.stdout
        transcript = conversation.read(Shell(), process.stdout.read(), None)
        assert transcript.fault is not None
        assert "reported no end" in transcript.fault

    def test_nothing_came_of_the_next_prompt(self) -> None:
        """Where the leader went between two prompts, the missing one is missed."""
        conversation = talk("a", "b")
        data = json.dumps(OK).encode() + b"\n\n" + conversation.mark + b" 0\n"
        assert conversation.read(Shell(), data, None).fault is not None


class TestMark:
    def test_nobody_can_read_it(self, tmp_path: Path) -> None:
        """The mark stands in no command line, environment or file, and the leader's memory and streams are closed."""
        look = (
            "pid=$PPID; tr '\\0' ' ' < /proc/$pid/cmdline > seen; cat /proc/$pid/environ >> seen; env >> seen\n"
            "cat .wfbench/* >> seen; readlink /proc/$pid/fd/1 > /dev/null && echo open >> seen\n"
            "echo forged > /proc/$pid/fd/1 && echo wrote >> seen\n"
        )
        conversation = talk(look + say(text("one"), OK), say(text("two"), OK))
        process = started(conversation, Shell(), tmp_path)
        assert process.stdout
        data = process.stdout.read()
        process.wait(20)
        seen = (tmp_path / "seen").read_bytes()
        assert PROGRAM.encode() in seen
        assert conversation.mark not in seen
        assert {b"open", b"wrote"}.isdisjoint(seen.splitlines())
        assert conversation.mark in data

    def test_a_guess_ends_nothing(self, tmp_path: Path) -> None:
        """A line like a mark is a line of the agent's, which no event is."""
        transcript, _ = run(tmp_path, "echo; echo 00112233445566778899aabbccddeeff 0\n" + say(OK), say(OK))
        assert transcript.fault is not None

    def test_a_turn_is_not_the_agents_to_tell(self, tmp_path: Path) -> None:
        """An agent cannot cut its own answer by claiming a new turn."""
        transcript, _ = run(tmp_path, say({"type": "turn", "number": 1}, OK), say(OK))
        assert transcript.fault is not None
        assert "not the agent's to tell" in transcript.fault


class TestAgents:
    @pytest.mark.parametrize(
        ("agent", "first", "later"),
        [
            (ClaudeCodeAgent(), "--session-id s", "--resume s"),
            (CodexAgent(), " exec --json", " exec resume --last --json"),
            (OpencodeAgent(), "--title t", "--continue"),
        ],
    )
    def test_each_goes_on_in_its_own_way(self, agent: Agent, first: str, later: str) -> None:
        """The first prompt begins a conversation, a later one goes on with it."""
        told = talk("a", "b").told
        words = [" ".join(agent.invocation(one).argv) for one in told]
        assert first in words[0]
        assert later in words[1]
        assert first not in words[1]

    def test_one_prompt_is_started_as_ever(self) -> None:
        """Without further prompts there is no leader, and mini keeps no history."""
        (alone,) = talk("a").told
        assert Conversation((alone,)).start(MiniAgent()) == MiniAgent().invocation(alone)
        assert json.loads(MiniAgent().invocation(alone).argv[-1])["converses"] is False
        assert json.loads(MiniAgent().invocation(talk("a", "b").told[0]).argv[-1])["converses"] is True


class TestAnswer:
    def test_all_text_after_the_last_call(self) -> None:
        """An answer is all that was said after the last tool call, not only its last part."""
        events = [
            TextEvent(text="I look."),
            ToolCall(id="1", name="x"),
            ToolResult(id="1"),
            TextEvent(text="a"),
            TextEvent(text="b"),
        ]
        assert Transcript(events=(*events, Final(status="ok"))).answer == "a\nb"

    def test_of_the_last_step_alone(self) -> None:
        """What was said to an earlier prompt is no part of the answer, also where the last one got none."""
        parts = [seal([TextEvent(text="one"), Final(status="ok")], None, 0), seal([Final(status="ok")], None, 0)]
        assert joined(parts).answer == ""

    def test_nothing_said(self) -> None:
        """Without a word after the last call there is no answer."""
        assert Transcript(events=(TextEvent(text="x"), ToolCall(id="1", name="x"))).answer == ""


def test_the_program_is_one_file() -> None:
    """The leader imports nothing of the harness: it runs where there is none."""
    assert "pytest_wfbench" not in PROGRAM_SOURCE.read_text().replace("pytest-wfbench", "")
