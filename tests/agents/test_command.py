"""Any program as an agent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.agents.base import AgentUnavailable
from pytest_wfbench.agents.command import SCRIPT_LIMIT, TARGET, CommandAgent
from pytest_wfbench.agents.stream import SkillUse

CALL = {"type": "tool_call", "id": "1", "name": "read", "arguments": {"path": ".claude/skills/work/SKILL.md"}}
RESULT = {"type": "tool_result", "id": "1", "error": False, "output": ""}
REPORT = f"printf '%s\\n' '{json.dumps(CALL)}' '{json.dumps(RESULT)}' >&\"$WFBENCH_EVENTS_FD\"\n"


@pytest.fixture
def run(runner: Callable[..., Any], place: Path) -> Callable[..., Any]:
    """Run a shell script with the given lines."""

    def start(lines: str, first: str = "#!/bin/sh", **fields: Any) -> Any:
        (place / "agent.sh").write_text(f"{first}\n{lines}\n")
        return runner("command", model="agent.sh")({}, **fields)

    return start


class TestSession:
    def test_works_on_the_prompt(self, run: Callable[..., Any]) -> None:
        """It reads the prompt on standard input, works in the workspace, and its exit status is its end."""
        ran = run("cat > got.txt; echo printed", prompt="Fix: ü")
        assert (ran.workspace / "got.txt").read_text() == "Fix: ü"
        assert (ran.final, ran.transcript.fault) == (("ok", None), None)
        assert (ran.stdout, ran.stderr) == (b"", b"printed\n")
        assert ran.upstream.requests == []

    def test_failure(self, run: Callable[..., Any]) -> None:
        """Another exit status is an error that names it."""
        assert run("exit 7").final == ("error", "exit status 7")

    def test_reports_events(self, run: Callable[..., Any]) -> None:
        """Events come through the named descriptor, and a skill file's read is its evidence."""
        ran = run(REPORT + "echo noise", skill="work")
        assert ran.kinds == ["tool_call", "tool_result", "skill", "final"]
        assert ran.transcript.events[2] == SkillUse(name="work", call_id="1", ok=True)

    def test_own_end(self, run: Callable[..., Any]) -> None:
        """An end that it reports is kept, unless the exit status denies it."""
        end = """echo '{"type": "final", "status": "%s", "error": null}' >&$WFBENCH_EVENTS_FD; exit %d"""
        assert run(end % ("error", 0)).final == ("error", None)
        assert run(end % ("ok", 3)).final[0] == "error"

    def test_broken_events(self, run: Callable[..., Any]) -> None:
        """Other bytes on the descriptor make the stream no evidence."""
        assert run("echo hello >&$WFBENCH_EVENTS_FD").transcript.fault.startswith("line 1 of the event stream")

    def test_other_interpreter(self, run: Callable[..., Any]) -> None:
        """Its first line decides what runs it."""
        ran = run("import pathlib; pathlib.Path('by').write_text('python')", first="#!/usr/bin/env python3")
        assert (ran.workspace / "by").read_text() == "python"

    def test_hanging(self, run: Callable[..., Any]) -> None:
        """Ended from outside, it has no end."""
        assert run("sleep 30", timeout=0.5).transcript.fault == "the session was ended from outside and reported no end"


class TestFind:
    def test_captured(self, tmp_path: Path) -> None:
        """The bytes are taken when it is found, whatever becomes of the file; the version is their digest."""
        (tmp_path / "a.sh").write_text("#!/bin/sh\n")
        runtime = CommandAgent().find("a.sh", tmp_path)
        (tmp_path / "a.sh").write_text("#!/bin/sh\nexit 1\n")
        assert (runtime.mounts[0].target, runtime.mounts[0].data) == (TARGET, b"#!/bin/sh\n")
        assert runtime.version.startswith("a.sh sha256:")
        assert runtime.version != CommandAgent().find("a.sh", tmp_path).version
        assert CommandAgent().find(str(tmp_path / "a.sh"), Path("/")).mounts[0].data.endswith(b"exit 1\n")

    def test_reports_events(self, tmp_path: Path) -> None:
        """A program that never names the descriptor's variable cannot report, which is known before it runs."""
        (tmp_path / "a.sh").write_text("#!/bin/sh\n")
        (tmp_path / "b.sh").write_text("#!/bin/sh\necho >&$WFBENCH_EVENTS_FD\n")
        assert not CommandAgent().find("a.sh", tmp_path).reports_events
        assert CommandAgent().find("b.sh", tmp_path).reports_events

    @pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "large", "no interpreter"])
    def test_refused(self, kind: str, tmp_path: Path) -> None:
        """Anything but a small regular file that can be executed is refused with its name."""
        path = tmp_path / "agent"
        if kind == "directory":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind != "missing":
            path.write_bytes(b"echo hi\n" if kind == "no interpreter" else b"#!" + bytes(SCRIPT_LIMIT))
        with pytest.raises(AgentUnavailable, match="command:agent"):
            CommandAgent().find("agent", tmp_path)
