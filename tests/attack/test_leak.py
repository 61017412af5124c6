"""Secrets of every shape and form, said everywhere an agent can say anything: none is in what a sweep leaves behind."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from urllib.parse import quote as percent

import pytest

from tests.attack.raid import Raid, Raiders

BODY = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
KNOWN = "wf-Provider/Value+1234567890abcdef"
# Said by the agent, by name: what is said, and what must then be nowhere.
SHAPES = {
    "aws": "AKIA" + "A1B2C3D4E5F6G7H8",
    "github": "ghp_" + BODY[:36],
    "slack": "xoxb-123456789012-" + BODY[:20],
    "openai": "sk-proj-" + BODY,
    "anthropic": "sk-ant-api03-" + BODY,
    "google": "AIza" + BODY[:35],
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.{BODY}.{BODY[::-1]}",
    "npm": "npm_" + BODY[:36],
    "pypi": "pypi-AgEI" + BODY,
}
FORMS = {
    "raw": KNOWN,
    "base64": base64.b64encode(f"x{KNOWN}".encode()).decode().rstrip("="),
    "url": percent(KNOWN, safe=""),
    "hex": KNOWN.encode().hex(),
    "lines": "\n".join((KNOWN[:12], KNOWN[12:24], KNOWN[24:])),
    "invisible": "\u200b".join((KNOWN[:12], KNOWN[12:24], KNOWN[24:])),
    "pem": f"-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY[::-1]}\n-----END PRIVATE KEY-----",
    "password": "https://user:hunter2222@host/x",
}
SAID = SHAPES | FORMS
GONE = SAID | {"pem": BODY[::-1], "password": "hunter2222"}
SPLIT = "sk-ant-api03-\u200b" + BODY

# A fixture that breaks with secrets in its locals and in its message.
CONFTEST = f"""
import pytest

@pytest.fixture
def workspace(workspace, cell):
    if cell.subject.model == "raw.sh":
        local = {KNOWN!r}
        other = "sk-ant-api03-" + {BODY!r}
        raise RuntimeError("broke with " + local + " and " + other)
    return workspace
"""

pytestmark = pytest.mark.slow


def event(value: object) -> str:
    return f"printf '%s\\n' {quote(json.dumps(value))} >&$WFBENCH_EVENTS_FD\n"


def script(secret: str) -> str:
    """An agent that says a secret in every field of every event, in a file, a file's name and its errors."""
    events = (
        {"type": "text", "text": f"see {secret} here, and a{secret}"},
        {"type": "tool_call", "id": "1", "name": f"t {secret}", "arguments": {"command": secret, secret: [secret]}},
        {"type": "tool_result", "id": "1", "output": "y " * 1010 + secret + "z" * 9000},
        {"type": "usage_claim", "usage": {"k": secret, secret: 2, "password": {secret: 1}}},
        {"type": "retry", "reason": secret},
    )
    name = "plain" if set("/\n") & set(secret) else secret
    wrong = " ".join(secret.split())
    return (
        "echo done > a.txt\n"
        + "".join(map(event, events))
        + f"printf '%s\\n' {quote(secret)} > kept.txt\n: > {quote(name[:200])}\n"
        + f"printf '%s\\n' {quote(secret)} {quote('failed with ' + wrong)} >&2\nexit 3\n"
    )


@pytest.fixture
def ended(raid: Callable[[str, Raiders], Raid]) -> Raid:
    """One cell a secret, with everything pytest can be asked to print."""
    scripts = {name: script(secret) for name, secret in SAID.items()} | {"split": script(SPLIT)}
    shown = ("-v", "-rA", "--tb=long", "--showlocals", "--durations=5", "--junitxml=junit.xml", "-n2")
    files = {"cases/conftest.py": CONFTEST}
    return raid("leak", Raiders(scripts, files=files, arguments=shown, environment={"WFTEST_API_KEY": KNOWN}))


def left(ended: Raid) -> Iterator[tuple[str, str]]:
    """Everything a sweep left or printed: names and texts."""
    yield "console", ended.output
    yield "junit.xml", (ended.path / "junit.xml").read_text()
    for path in Path(ended.results).rglob("*"):
        if path.is_file():
            name = str(path.relative_to(ended.results))
            yield name, f"{name}\n{path.read_text(errors='surrogateescape')}"


class TestSweep:
    def test_every_cell_spoke(self, ended: Raid) -> None:
        """Each agent got to say its secret: it is marked as removed in the row and in each artifact."""
        rows = ended.rows()
        assert set(rows) == {*SAID, "split"}
        for name in set(SAID) - {"raw"}:
            assert "[redacted]" in rows[name]["reason"], name
            assert "[redacted]" in str(rows[name]["tool_calls"]), name
            for artifact in ("transcript.jsonl", "patch.diff", "stderr.txt"):
                assert "[redacted]" in ended.artifact(name, artifact), (name, artifact)

    def test_files_that_must_be_there(self, ended: Raid) -> None:
        """The search below has everything to search."""
        names = {name.rpartition("/")[2] for name, _ in left(ended)}
        assert {"results.jsonl", "sweep.json", "report.md", "comment.md", "transcript.jsonl", "patch.diff",
                "stderr.txt", "console", "junit.xml"} <= names  # fmt: skip

    @pytest.mark.parametrize("name", sorted(GONE))
    def test_nowhere(self, ended: Raid, name: str) -> None:
        """A secret is in no row, artifact, report, comment, JUnit file or line of the console, locals included."""
        escaped = json.dumps(GONE[name])[1:-1]
        found = [where for where, text in left(ended) if GONE[name] in text or escaped in text]
        assert found == []

    def test_parted_by_nothing_visible(self, ended: Raid) -> None:
        """A key parted by an invisible character is not put together where such characters are dropped."""
        assert [where for where, text in left(ended) if SPLIT.replace("\u200b", "") in text] == []

    def test_a_broken_fixture_is_shown(self, ended: Raid) -> None:
        """A traceback with locals is still shown, without its secrets."""
        assert ended.rows()["raw"]["kind"] == "infra-error"
        assert "RuntimeError: broke with [redacted] and [redacted]" in ended.output
        assert "local      = '[redacted]'" in ended.output
