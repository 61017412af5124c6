"""Each agent in the real sandbox, with nothing but its own mounts, over the door's socket."""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.agents.base import SessionInput
from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.spec import GATEWAY_PORT, HOME, STREAM, Bind, Command, Data
from tests.e2e.conftest import require_agent

pytestmark = pytest.mark.slow

FORGED = '{"type": "text", "text": 3}'
# All descriptors that are no file: among those are the agents' own databases, without which they cannot go on.
FORGE = f"for fd in /proc/$PPID/fd/* /proc/1/fd/*; do test -f $fd || echo '{FORGED}' > $fd; done; echo hi > made.txt"
# What a second prompt's program would import, or be.
PLANT = "cd /opt/wfbench/mini && for f in json.py __main__.py __main__.pyc; do touch $f && touch ~/planted; done; "
PLANT += "mv /opt/wfbench/mini /tmp/x && touch ~/planted; test ! -e ~/planted && echo ok > /workspace/sealed.txt"
# Generous: the slowest agent needs five seconds of a processor that nobody else uses.
TIMEOUT = 200
WHERE = "{ command -v python3; rg --version > /dev/null && echo ok; } > where.txt"


@pytest.fixture(scope="module")
def sandbox() -> Bubblewrap:
    return make_bubblewrap()


@pytest.fixture
def cell(sandbox: Bubblewrap) -> Iterator[Path]:
    """A short-lived directory of the sandbox's identity, whose path is short enough for a socket."""
    path = Path("/tmp") / f"wfb-{uuid.uuid4().hex[:8]}"
    (path / "workspace").mkdir(parents=True)
    skill = path / "workspace/.claude/skills/work/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: work\ndescription: Does the work\n---\n# Work\n")
    for part in (path, *path.rglob("*")):
        sandbox.identity.own(part)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def session(sandbox: Bubblewrap, cell: Path, upstream: Any) -> Callable[..., Transcript]:
    """Run one session as a cell does."""

    def run(name: str, model: str, *turns: Any, **fields: Any) -> Transcript:
        require_agent(name, cell, model)
        agent, socket = get_agent(name), cell / "door"
        upstream(turns, door=socket)
        sandbox.identity.own(socket)
        told = SessionInput(
            prompt="Do it.", model=model, session_id=str(uuid.uuid4()), timeout=TIMEOUT,
            base_url=f"http://127.0.0.1:{GATEWAY_PORT}", key="key", skill="work", **fields,
        )  # fmt: skip
        start = agent.invocation(told)
        files = tuple(Data(f"{HOME}/{path}", data) for path, data in start.files.items())
        workspace = Bind(cell / "workspace", "/workspace", writable=True)
        mounts = (workspace, *agent.find(model, cell).mounts, *files)
        finished = sandbox.run(
            Command(
                start.argv,
                mounts,
                TIMEOUT,
                env=start.env,
                stdin=start.stdin,
                gateway=socket,
                stdout_limit=STREAM,
                keep="whole",
            )
        )
        assert FORGED.encode() not in finished.stdout.splitlines()
        found = agent.read(finished.stdout, finished.status)
        assert (found.fault, found.final.status if found.final else None) == (None, "ok"), found.events
        return found

    return run


def test_mini(session: Callable[..., Transcript], cell: Path) -> None:
    """mini finds interpreter, package and gateway, reads its skill, and its tools can write neither events nor code."""
    found = session(
        "mini", "replay/demo",
        {"tools": [("bash", {"command": "cat .claude/skills/work/SKILL.md"})]},
        {"tools": [("bash", {"command": FORGE}), ("bash", {"command": PLANT})]},
        {"tools": [("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})]},
    )  # fmt: skip
    assert found.skills_used == ("work",)
    assert (cell / "workspace/made.txt").read_text() == "hi\n"
    assert (cell / "workspace/sealed.txt").read_text() == "ok\n"


def test_claude_code(session: Callable[..., Transcript], cell: Path) -> None:
    """Claude Code runs without root, without its installation around it, and its tools cannot write events."""
    found = session(
        "claude-code", "replay/demo",
        {"tools": [("Skill", {"skill": "work"})]},
        {"tools": [("Bash", {"command": FORGE, "description": "x"})]},
        {"text": "Done."},
    )  # fmt: skip
    assert found.skills_used == ("work",)
    assert (cell / "workspace/made.txt").read_text() == "hi\n"


def test_codex(session: Callable[..., Transcript], cell: Path) -> None:
    """codex runs with its search tool and the sandbox's interpreter, and its tools cannot write events."""
    found = session(
        "codex", "replay/demo",
        {"tools": [("exec_command", {"cmd": "cat .claude/skills/work/SKILL.md"})]},
        {"tools": [("exec_command", {"cmd": FORGE}), ("exec_command", {"cmd": WHERE})]},
        {"text": "Done."},
    )  # fmt: skip
    assert found.skills_used == ("work",)
    assert (cell / "workspace/made.txt").read_text() == "hi\n"
    assert (cell / "workspace/where.txt").read_text().splitlines() == [f"{sys.prefix}/bin/python3", "ok"]


def test_opencode(session: Callable[..., Transcript], cell: Path) -> None:
    """opencode loads a skill with its search tool, and its tools cannot write events."""
    found = session(
        "opencode", "replay/demo",
        {"tools": [("skill", {"name": "work"})]},
        {"tools": [("bash", {"command": text, "description": "x"}) for text in (FORGE, WHERE)]},
        {"text": "Done."},

    )  # fmt: skip
    assert found.skills_used == ("work",)
    assert (cell / "workspace/made.txt").read_text() == "hi\n"
    assert (cell / "workspace/where.txt").read_text().splitlines() == [f"{sys.prefix}/bin/python3", "ok"]


def test_command(session: Callable[..., Transcript], cell: Path) -> None:
    """A script runs by its first line, from bytes alone, and its printing is no event."""
    (cell / "agent.sh").write_text("#!/bin/bash\ncat > made.txt\necho printed\n")
    found = session("command", "agent.sh")
    assert [event.type for event in found.events] == ["final"]
    assert (cell / "workspace/made.txt").read_text().endswith("Do it.")
