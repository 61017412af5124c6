"""Forged evidence: claims of skill use, streams, result files and names that would pass a cell or speak to a reader."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable
from shlex import quote

import pytest

from pytest_wfbench.agents.command import CommandAgent
from pytest_wfbench.agents.events import MOST_LINES
from pytest_wfbench.agents.stream import UsageClaim
from tests.attack.raid import Raid, Raiders

SKILL = ".claude/skills/work/SKILL.md"
DONE = "echo done > a.txt\n"
OK = {"type": "final", "status": "ok"}
RESULT = {"type": "tool_result", "id": "1"}
# Right-to-left, isolates, escapes, a control sequence of one byte, HTML, Markdown, a mention, and a runner's orders.
NASTY = "\u202e\u2066\x1b[31m\x9b31m\x07\u200b</details>@octocat ::add-mask::x ##[group]y <script>|**b**"
REPORTS = ("report.md", "comment.md", "results.jsonl", "sweep.json")

pytestmark = pytest.mark.slow


def call(command: str = f"cat {SKILL}", **fields: object) -> dict[str, object]:
    return {"type": "tool_call", "id": "1", "name": "bash", "arguments": {"command": command}, **fields}


def deep(levels: int) -> dict[str, object]:
    """A call whose argument is a value in so many others."""
    return json.loads('{"a":' * levels + "1" + "}" * levels)  # type: ignore[no-any-return]


def told(*events: dict[str, object]) -> str:
    lines = " ".join(quote(json.dumps(event)) for event in events)
    return f"{DONE}printf '%s\\n' {lines} >&$WFBENCH_EVENTS_FD\n"


FORGED_FILES = (
    DONE
    + "mkdir -p ~/.claude/projects/x\n"
    + "for f in ~/.claude/projects/x/s.jsonl ~/results.jsonl ~/review.json results.jsonl review.json; do\n"
    + """  echo '{"type":"skill","name":"work","call_id":"1","ok":true}' > $f; done # WFBENCH_EVENTS_FD\n"""
)
# Writes into whatever descriptor of whatever process it can open anew.
OTHERS = (
    told({"type": "text", "text": "spoken"}) + "for f in /proc/[0-9]*/fd/*; do\n"
    """  (printf '%s\\n' '{"type":"text","text":"forged"}' > $f) 2>/dev/null; done; true\n"""
)
# What each script does, and the kind its cell must have; all of them made the task's oracle green.
FOOLS = {
    "on-stdout": (DONE + f"echo {quote(json.dumps(call()))}; echo {quote(json.dumps(RESULT))} # WFBENCH_EVENTS_FD\n",
                  "skill-not-invoked"),
    "own-skill": (told({"type": "skill", "name": "work", "call_id": "1", "ok": True}), "evidence-unverified"),
    "no-call": (told(RESULT), "evidence-unverified"),
    "wrong-id": (told(call(), {**RESULT, "id": "2"}), "evidence-unverified"),
    "result-first": (told(RESULT, call()), "evidence-unverified"),
    "two-results": (told(call(), RESULT, RESULT), "evidence-unverified"),
    "two-calls": (told(call(), call(), RESULT), "evidence-unverified"),
    "two-ends": (told(call(), RESULT, OK, OK), "evidence-unverified"),
    "garbage": (told(call(), RESULT) + "head -c 99 /dev/zero >&$WFBENCH_EVENTS_FD\n", "evidence-unverified"),
    "foreign-session": (told(call(session="other", cell_id="x"), RESULT), "evidence-unverified"),
    "nested": (told(call(parent_tool_use_id="9"), RESULT), "evidence-unverified"),
    "mentioned": (told(call(f"echo {SKILL}"), RESULT), "skill-not-invoked"),
    "chained": (told(call(f"cat {SKILL}; true"), RESULT), "skill-not-invoked"),
    "failed": (told(call(), {**RESULT, "error": True}), "skill-not-invoked"),
    "unanswered": (told(call()), "skill-not-invoked"),
    "other-skill": (told(call("cat .claude/skills/plan/SKILL.md"), RESULT), "skill-not-invoked"),
    "forged-files": (FORGED_FILES, "skill-not-invoked"),
    "others-streams": (OTHERS, "skill-not-invoked"),
    "nasty-name": (told(call(name=NASTY), RESULT) + f"printf %s {quote(NASTY)} >&2; exit 3\n", "session-error"),
    "nasty-end": (told(call(), RESULT, {"type": "final", "status": "error", "error": NASTY}), "session-error"),
    "nasty-id": (told({**call(), "id": NASTY}, {**RESULT, "id": "x" + NASTY}), "evidence-unverified"),
    "nasty-file": (told(call(), RESULT) + f"echo x > {quote(NASTY.replace('/', ''))}\n", None),
    "long-claim": (told(call(), RESULT, {"type": "usage_claim", "usage": {"x": "y" * 90_000}}), None),
    "too-deep": (told({**call(), "arguments": deep(900)}, RESULT), "evidence-unverified"),
    "deep": (told(call(), RESULT, {**call(), "id": "2", "arguments": deep(90)}), None),
    "deep-claim": (told(call(), RESULT, {"type": "usage_claim", "usage": deep(240)}), "evidence-unverified"),
    "links": ("ln -sf /etc/passwd b; mkfifo c; truncate -s 300M d\n" + told(call(), RESULT), None),
    "honest": (told(call(), RESULT), None),
}  # fmt: skip


@pytest.fixture
def ended(raid: Callable[[str, Raiders], Raid]) -> Raid:
    """One cell a trick, in an arm that wants its skill used."""
    scripts = {name: text for name, (text, _) in FOOLS.items()}
    return raid("fool", Raiders(scripts, arm="workflow_direct", arguments=("-v", "-rA", "--junitxml=junit.xml")))


class TestEvidence:
    @pytest.mark.parametrize("name", sorted(FOOLS))
    def test_kind(self, ended: Raid, name: str) -> None:
        """No trick passes; each is told by its own kind, and honest work passes whatever else it left."""
        row = ended.rows()[name]
        assert (row["kind"], row["outcome"] == "pass") == (FOOLS[name][1], FOOLS[name][1] is None), row["reason"]

    def test_streams_are_not_to_be_opened(self, ended: Raid) -> None:
        """No process of the sandbox can write into the stream of another."""
        transcript = ended.artifact("others-streams", "transcript.jsonl")
        assert ("spoken" in transcript, "forged" in transcript) == (True, False)

    def test_long_claim(self, ended: Raid) -> None:
        """A claim too long for a row is unknown."""
        assert ended.rows()["long-claim"]["claimed_usage"] is None


class TestReaders:
    def texts(self, ended: Raid) -> dict[str, str]:
        found = {name: (ended.results / name).read_text() for name in REPORTS}
        return found | {"console": ended.output, "junit.xml": (ended.path / "junit.xml").read_text()}

    def test_nothing_invisible(self, ended: Raid) -> None:
        """No control, bidirectional or invisible character of an agent is in what people and terminals read."""
        texts = self.texts(ended) | {"stderr": ended.artifact("nasty-name", "stderr.txt")}
        for where, text in texts.items():
            bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - set("\n\t")
            assert not bad, where
        assert "\\u202e" in texts["stderr"]

    def test_nothing_is_obeyed(self, ended: Raid) -> None:
        """No text of an agent is an order to a CI runner."""
        for where in ("console", "report.md", "comment.md", "junit.xml"):
            assert not re.search(r"::(add-mask|set-output)|##\[", self.texts(ended)[where]), where

    def test_nothing_is_markup(self, ended: Raid) -> None:
        """Comment and report show HTML, Markdown and mentions of an agent, and render none of them."""
        for name in ("comment.md", "report.md"):
            text = self.texts(ended)[name]
            assert "octocat" in text
            assert not re.search(r"</details>|<script>|@octocat|(?<!\\)\*\*b", text), name


class TestFlood:
    @pytest.mark.parametrize(
        "line", [b'{"type":"text","text":"a"}\n', b"x\n", b"\n"], ids=["events", "garbage", "blank"]
    )
    def test_costs_little(self, line: bytes) -> None:
        """64 MiB of tiny lines are told as a flood, or as garbage, in a few seconds of processor time."""
        data = line * ((64 << 20) // len(line))
        began = time.process_time()
        transcript = CommandAgent().read(data, 0)
        assert time.process_time() - began < 2.5
        assert len(transcript.events) <= MOST_LINES + 1
        assert str(transcript.fault).startswith(("there are more than 50,000 lines", "line 1 of the event stream"))

    @pytest.mark.parametrize("filler", [b"[],", b"{},", b'"\xc3\xa9",'], ids=["lists", "objects", "strings"])
    @pytest.mark.parametrize("times", [1, 40])
    def test_holds_little(self, filler: bytes, times: int) -> None:
        """64 MiB of tiny values, in one line or in many, are told as a flood before they take gigabytes."""
        many = filler * ((60 << 20) // len(filler) // times)
        lines = [b'{"type":"usage_claim","usage":{"a":[' + many + b"0]}}\n"] * times
        began = time.process_time()
        transcript = CommandAgent().read(b"".join(lines), 0)
        assert time.process_time() - began < 10
        assert str(transcript.fault) == "there are more than 4,000,000 values in the event stream"
        kept = [event for event in transcript.events if isinstance(event, UsageClaim)]
        assert len(kept) < times / 2

    def test_text_holds_no_values(self) -> None:
        """What stands in strings is no value: a long session's words are read, whatever they are."""
        text = json.dumps({"type": "text", "text": '[1,"\\' * 50_000})
        transcript = CommandAgent().read(f"{text}\n".encode() * 100, 0)
        assert (len(transcript.events), transcript.fault) == (101, None)
