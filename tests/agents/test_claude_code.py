"""The real Claude Code binary against a scripted provider: each fact that the adapter relies on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.agents.base import AgentUnavailable, SessionInput
from pytest_wfbench.agents.claude_code import TARGET, ClaudeCodeAgent
from pytest_wfbench.agents.pinned import pinned_version
from pytest_wfbench.agents.stream import Retry, SkillUse, TextEvent, ToolCall, ToolResult, UsageClaim


def bash(command: str, **fields: Any) -> dict[str, Any]:
    return {"tools": [("Bash", {"command": command, "description": "x"})], **fields}


SKILL = {"tools": [("Skill", {"skill": "work"})]}
DONE = {"text": "Done."}


@pytest.fixture
def run(skilled: Callable[..., Any]) -> Any:
    """Run the binary over a workspace with the skill ``work``."""
    return skilled("claude-code")


@pytest.mark.slow
class TestSession:
    def test_works_and_reports(self, run: Any) -> None:
        """A session with a skill, an edit and a failing command reads as what happened, in order."""
        ran = run(
            {"text": "I begin.", **SKILL}, bash("echo hi > made.txt; echo shown"), bash("false"), DONE, skill="work"
        )
        assert ran.transcript.fault is None
        assert ran.final == ("ok", None), ran.stderr
        assert (ran.workspace / "made.txt").read_text() == "hi\n"
        assert ran.kinds == [
            "text", "tool_call", "tool_result", "skill", "tool_call", "tool_result", "tool_call", "tool_result",
            "text", "usage_claim", "final",
        ]  # fmt: skip
        assert ran.transcript.events[3] == SkillUse(name="work", call_id="toolu_0_0", ok=True)
        assert [e.error for e in ran.transcript.events if isinstance(e, ToolResult)] == [False, False, True]
        assert ran.transcript.tool_calls == {"Skill": 1, "Bash": 2}

    def test_asks_the_gateway_for_the_subject_alone(self, run: Any) -> None:
        """Every request is for the subject's model with the session's key, on the Anthropic route."""
        ran = run(DONE, prompt="Only this.", effort="low", options={"max_output_tokens": "1234"})
        assert {body["max_tokens"] for _, _, body in ran.upstream.requests} == {1234}
        assert {(path, body["model"]) for path, _, body in ran.upstream.requests} == {("/v1/messages", "replay/demo")}
        assert {headers["Authorization"] for _, headers, _ in ran.upstream.requests} == {
            "Bearer session-key-of-the-test"
        }
        asked = ran.upstream.requests[0][2]["messages"][0]["content"]
        assert asked[-1]["text"] == "Only this."

    @pytest.mark.parametrize("model", ["litellm/team-model", "anthropic/claude-opus-4-6"])
    def test_effort(self, run: Any, model: str) -> None:
        """A requested effort is in every request that has tools, whether Claude Code knows the model or not."""
        bodies = [body for _, _, body in run(DONE, model=model, effort="low").upstream.requests if body.get("tools")]
        assert {body["output_config"]["effort"] for body in bodies} == {"low"}

    def test_claim_holds_all_turns(self, run: Any) -> None:
        """The claim is the result's own sum, not one of partial block usages."""
        [claim] = [e for e in run(bash("true"), DONE).transcript.events if isinstance(e, UsageClaim)]
        assert claim.usage["model_usage"]["replay/demo"]["inputTokens"] == 20
        assert [usage["output_tokens"] for usage in claim.usage["results"]] == [6]

    def test_denied_skill_tool(self, run: Any) -> None:
        """A denied tool is not offered, and calling it is no use."""
        ran = run(SKILL, DONE, deny=("Skill",))
        assert "Skill" not in [tool["name"] for tool in ran.upstream.requests[0][2]["tools"]]
        assert ran.transcript.skills_used == ()
        assert ran.final == ("ok", None)

    def test_unknown_skill_is_no_use(self, run: Any) -> None:
        """A skill that does not exist is called, not used."""
        ran = run({"tools": [("Skill", {"skill": "nope"})]}, DONE)
        assert [e for e in ran.transcript.events if isinstance(e, SkillUse)] == [
            SkillUse(name="nope", call_id="toolu_0_0", ok=False)
        ]

    def test_foreground_subagent(self, run: Any) -> None:
        """A subagent's tools are counted, its words are not the answer, and its model is the subject's."""
        spawn = {"description": "d", "prompt": "SIDE", "subagent_type": "general-purpose", "run_in_background": True}
        ran = run({"tools": [("Agent", spawn)]}, DONE, side=[bash("echo inside", text="side"), {"text": "side too"}])
        assert ran.transcript.fault is None
        assert ran.transcript.tool_calls == {"Agent": 1, "Bash": 1}
        assert [e.text for e in ran.transcript.events if isinstance(e, TextEvent)] == ["Done."]
        assert {body["model"] for _, _, body in ran.upstream.requests} == {"replay/demo"}

    def test_background_subagent_gives_two_results(self, run: Any) -> None:
        """Where subagents do run in the background, the several results still come to one end."""
        spawn = {"description": "d", "prompt": "SIDE", "subagent_type": "general-purpose", "run_in_background": True}
        ran = run(
            {"tools": [("Agent", spawn)]}, DONE, {"text": "After."}, side=[bash("sleep 1"), {"text": "side"}],
            env={"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "0"},
        )  # fmt: skip
        assert ran.stdout.count(b'"type":"result"') == 2
        assert (ran.transcript.fault, ran.final) == (None, ("ok", None))


@pytest.mark.slow
class TestErrors:
    @pytest.mark.parametrize(("status", "asked"), [(401, 2), (403, 1), (429, 2), (500, 2)])
    def test_api_error_is_an_error(self, run: Any, status: int, asked: int) -> None:
        """An API failure calls itself a success with ``is_error``: it is an error, after at most one retry."""
        ran = run({"errors": [status] * 9})
        assert b'"subtype":"success"' in ran.stdout
        assert ran.final[0] == "error"
        assert f"scripted {status}" in ran.final[1]
        assert len(ran.upstream.requests) == asked
        assert sum(isinstance(e, Retry) for e in ran.transcript.events) == asked - 1
        assert not any(isinstance(e, TextEvent) for e in ran.transcript.events)

    def test_cut_stream(self, run: Any) -> None:
        """A stream that breaks off every time ends in an error."""
        ran = run({"text": "hello " * 50, "cut": True})
        assert (ran.transcript.fault, ran.final[0]) == (None, "error")

    def test_hanging_provider(self, run: Any) -> None:
        """A provider that never answers leaves no end: the wall clock is the harness's."""
        ran = run({"hang": True}, timeout=3)
        assert ran.kinds == []
        assert ran.transcript.fault == "the session was ended from outside and reported no end"

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root to show what root gets")
    def test_refuses_root(self, run: Any) -> None:
        """As uid 0 it says nothing in JSON, which is a fault and no end."""
        run.keep_uid = True
        ran = run(DONE)
        assert ran.stdout == b""
        assert ran.transcript.fault == "the session ended with exit status 1 and reported no end"


class TestFind:
    def test_version(self, run: Any, tmp_path: Path) -> None:
        """The binary says its version and is mounted read-only at a fixed place."""
        runtime = ClaudeCodeAgent().find("replay/demo", tmp_path)
        assert runtime.version.startswith("claude-code ")
        assert (runtime.mounts[0].target, runtime.mounts[0].writable) == (TARGET, False)

    def test_pinned(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without one on PATH it is the pinned release."""
        monkeypatch.setenv("PATH", str(tmp_path))
        assert ClaudeCodeAgent().find("m", tmp_path).version == f"claude-code {pinned_version('claude-code')}"

    def test_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nowhere to be found, it says how to get it."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path))
        with pytest.raises(AgentUnavailable, match="make agents"):
            ClaudeCodeAgent().find("replay/demo", tmp_path)

    def test_script_on_path_is_passed_over(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A Node script named claude could not run in a sandbox by itself."""
        (tmp_path / "claude").write_text("#!/usr/bin/env node\n")
        (tmp_path / "claude").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path))
        with pytest.raises(AgentUnavailable, match="not installed"):
            ClaudeCodeAgent().find("replay/demo", tmp_path)


def test_key_is_in_no_argument() -> None:
    """The session's key travels in the environment alone."""
    session = SessionInput(prompt="p", model="m", session_id="s", timeout=1, base_url="http://h", key="secret-key")
    invocation = ClaudeCodeAgent().invocation(session)
    assert not any("secret-key" in word for word in invocation.argv)
    assert invocation.env["ANTHROPIC_AUTH_TOKEN"] == "secret-key"
    assert not any(isinstance(event, ToolCall) for event in ClaudeCodeAgent().read(b"", 0).events)
