"""The real opencode binary against a scripted provider: each fact that the adapter relies on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.agents.base import AgentUnavailable, SessionInput
from pytest_wfbench.agents.opencode import PERMISSIONS, TARGET, OpencodeAgent
from pytest_wfbench.agents.pinned import pinned_version
from pytest_wfbench.agents.stream import Retry, SkillUse, TextEvent, ToolCall, ToolResult, UsageClaim

SKILL = {"tools": [("skill", {"name": "work"})]}
DONE = {"text": "Done."}
SPAWN = {"tools": [("task", {"description": "d", "prompt": "SIDE", "subagent_type": "general"})]}


def bash(command: str, **fields: Any) -> dict[str, Any]:
    return {"tools": [("bash", {"command": command, "description": "x"})], **fields}


def offered(ran: Any) -> set[str]:
    return {tool["function"]["name"] for tool in ran.upstream.requests[0][2]["tools"]}


@pytest.fixture
def run(skilled: Callable[..., Any]) -> Any:
    """Run the binary over a workspace with the skill ``work``."""
    return skilled("opencode")


@pytest.mark.slow
class TestSession:
    def test_works_and_reports(self, run: Any) -> None:
        """A session with a skill, a change and failures of its tools reads as what happened; no file is fetched."""
        many = {"tools": [("bash", {"command": "exit 3", "description": "x"}), ("nosuch", {"a": 1})]}
        ran = run({"text": "I begin.", **SKILL}, bash("echo hi > made.txt; echo shown"), many, DONE, skill="work")
        assert (ran.transcript.fault, ran.final) == (None, ("ok", None)), ran.stderr
        assert (ran.workspace / "made.txt").read_text() == "hi\n"
        assert ran.transcript.skills_used == ("work",)
        assert ran.transcript.tool_calls == {"skill": 1, "bash": 2, "nosuch": 1}
        failed = {e.id for e in ran.transcript.events if isinstance(e, ToolResult) and e.error}
        named = [e.name for e in ran.transcript.events if isinstance(e, ToolCall) and e.id in failed]
        assert sorted(named) == ["bash", "nosuch"]
        # It asks for nothing but answers: no title, no summary, no other model; its claim sums up to the provider's.
        assert len(ran.upstream.requests) == 4
        assert {(path, body["model"]) for path, _, body in ran.upstream.requests} == {
            ("/v1/chat/completions", "replay/demo")
        }
        assert {headers["Authorization"] for _, headers, _ in ran.upstream.requests} == {
            "Bearer session-key-of-the-test"
        }
        [claim] = [e for e in ran.transcript.events if isinstance(e, UsageClaim)]
        assert [tokens["output"] for tokens in claim.usage["steps"]] == [3, 3, 3, 3]

    def test_workspace_does_not_overrule(self, run: Any) -> None:
        """A configuration in the workspace moves neither model nor provider; its instructions are read all the same."""
        (run.place / "workspace/AGENTS.md").write_text("Mind the gap.\n")
        other = {
            "model": "openai/gpt-5", "small_model": "openai/gpt-5-mini",
            "provider": {"wfbench": {"options": {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "mine"}}},
        }  # fmt: skip
        (run.place / "workspace/opencode.json").write_text(json.dumps(other))
        limits = {"output_limit": "1234", "context_limit": "100000"}
        ran = run(DONE, effort="low", deny=("Skill", "Bash"), options=limits)
        assert (ran.transcript.fault, ran.final) == (None, ("ok", None)), ran.stdout[:600] + ran.stderr[-300:]
        [(_, headers, body)] = ran.upstream.requests
        assert (headers["Authorization"], body["model"]) == ("Bearer session-key-of-the-test", "replay/demo")
        # A requested effort travels in each request, and a denied tool is not offered, nor are skills told of.
        assert (body["reasoning_effort"], body["max_tokens"]) == ("low", 1234)
        assert not {"skill", "bash"} & offered(ran)
        assert "Does the work" not in json.dumps(body["messages"])
        assert "Mind the gap." in json.dumps(body["messages"])

    @pytest.mark.parametrize("name", [".opencode/plugin/mine.ts", ".opencode/plugins/.x.js", "opencode.json"])
    def test_plugin(self, run: Any, name: str) -> None:
        """Where a plugin would be loaded into the agent it is not started, and says why."""
        plugin = run.place / "workspace" / name
        plugin.parent.mkdir(parents=True, exist_ok=True)
        plugin.write_text('{"plugin": ["./mine.ts"]}' if plugin.suffix == ".json" else 'console.log("FORGED")\n')
        ran = run(DONE)
        assert (ran.stdout, ran.transcript.fault, len(ran.upstream.requests)) == (b"", None, 0)
        assert ran.final == ("error", "exit status 3 before anything was done")
        assert b"plugins for opencode" in ran.stderr

    def test_empty_plugin_directories(self, run: Any) -> None:
        """Directories for plugins without any, and other files there, keep nothing from starting."""
        for name in ("plugin", "plugins", "command"):
            (run.place / "workspace/.opencode" / name).mkdir(parents=True)
        (run.place / "workspace/.opencode/command/hi.md").write_text("Say hi.\n")
        assert run(DONE).final == ("ok", None)

    def test_subagent(self, run: Any) -> None:
        """A subagent's words, tools and tokens are absent from the stream; its model is the subject's."""
        ran = run(SPAWN, DONE, side=[bash("echo in > in.txt", text="side"), {"text": "side too"}])
        assert (ran.transcript.fault, ran.final) == (None, ("ok", None))
        assert (ran.workspace / "in.txt").read_text() == "in\n"
        assert ran.transcript.tool_calls == {"task": 1}
        assert [e.text for e in ran.transcript.events if isinstance(e, TextEvent)] == ["Done."]
        assert {body["model"] for _, _, body in ran.upstream.requests} == {"replay/demo"}
        [claim] = [e for e in ran.transcript.events if isinstance(e, UsageClaim)]
        assert (len(claim.usage["steps"]), len(ran.upstream.requests)) == (2, 4)

    def test_skill_needs_its_search_tool(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without ``rg`` a skill cannot be loaded, which is a use that failed; and of no skill there is none."""
        monkeypatch.setattr("pytest_wfbench.agents.opencode.with_tools", lambda argv: tuple(argv))
        ran = run(SKILL, {"tools": [("skill", {"name": "nope"})]}, DONE)
        assert [(e.name, e.ok) for e in ran.transcript.events if isinstance(e, SkillUse)] == [
            ("work", False),
            ("nope", False),
        ]


@pytest.mark.slow
class TestErrors:
    def test_denied_permission(self, run: Any) -> None:
        """A denied permission ends the session with exit 0 and no error event: it is an error all the same."""
        rule = {"permission": {"bash": {"*": "deny", "ls *": "allow"}}}
        ran = run(bash("echo hi > made.txt"), DONE, env={"OPENCODE_CONFIG_CONTENT": json.dumps(rule)})
        assert (ran.status, b'"type":"error"' in ran.stdout) == (0, False)
        assert not (ran.workspace / "made.txt").exists()
        assert [e.error for e in ran.transcript.events if isinstance(e, ToolResult)] == [True]

    @pytest.mark.parametrize(("status", "asked"), [(401, 1), (500, 6)])
    def test_api_error_is_an_error(self, run: Any, status: int, asked: int) -> None:
        """An API failure is an error in the end; the requests that it repeats before are not in its stream."""
        ran = run({"errors": [status] * 9})
        assert (ran.transcript.fault, ran.final) == (None, ("error", f"scripted {status}"))
        assert len(ran.upstream.requests) == asked
        assert not any(isinstance(e, Retry) for e in ran.transcript.events)

    def test_cut_stream(self, run: Any) -> None:
        """A stream that breaks off is no answer, however much it said."""
        ran = run({"text": "hello " * 50, "cut": True}, timeout=25)
        assert ran.final is None or ran.final[0] == "error"

    def test_incomplete_answer(self, run: Any) -> None:
        """An answer that was cut for its length is not the end of the work, though it exits with 0."""
        ran = run({"text": "abc", "finish": "max_tokens"})
        assert ran.status == 0
        assert ran.final == ("error", "the session ended after a step that ended with 'length'")


class TestFind:
    def test_pinned(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without one on PATH it is the pinned release's native binary, mounted read-only with its search tool."""
        monkeypatch.setenv("PATH", str(tmp_path))
        runtime = OpencodeAgent().find("m", tmp_path)
        assert runtime.version == f"opencode {pinned_version('opencode')}"
        assert [mount.target for mount in runtime.mounts] == [TARGET, "/opt/wfbench/tools"]
        assert runtime.trial == (TARGET, "--version")

    def test_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nowhere to be found, it and its search tool, it says how to get it."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path))
        with pytest.raises(AgentUnavailable, match=r"ripgrep .*make agents"):
            OpencodeAgent().find("replay/demo", tmp_path)


def test_key_is_in_no_argument_and_no_configuration() -> None:
    """The session's key is a variable of its own, which the configuration only names."""
    session = SessionInput(prompt="p", model="m", session_id="s", timeout=1, base_url="http://h", key="secret-key")
    invocation = OpencodeAgent().invocation(session)
    assert not any("secret-key" in word for word in invocation.argv)
    assert [name for name, value in invocation.env.items() if "secret-key" in value] == ["WFBENCH_OPENCODE_KEY"]
    assert not any(b"secret-key" in data for data in invocation.files.values())
    assert {"Skill", "Bash"} <= PERMISSIONS.keys()
