"""The real codex binary against a scripted provider: each fact that the adapter relies on."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.agents.base import AgentUnavailable, SessionInput
from pytest_wfbench.agents.codex import TARGET, CodexAgent
from pytest_wfbench.agents.pinned import pinned_version
from pytest_wfbench.agents.stream import Retry, SkillUse, TextEvent, ToolResult, UsageClaim

PATCH = "*** Begin Patch\n*** Add File: made.txt\n+hi\n*** End Patch\n"
KNOWN = "openai/gpt-5.5"
READ_SKILL = {"tools": [("exec_command", {"cmd": "cat .claude/skills/work/SKILL.md"})]}
DONE = {"text": "Done."}


def bash(command: str, **fields: Any) -> dict[str, Any]:
    return {"tools": [("exec_command", {"cmd": command})], **fields}


def tools_of(ran: Any) -> list[tuple[str, str | None]]:
    return [(tool["type"], tool.get("name")) for tool in ran.upstream.requests[0][2]["tools"]]


@pytest.fixture
def run(skilled: Callable[..., Any]) -> Any:
    """Run the binary over a workspace with the skill ``work``."""
    return skilled("codex")


@pytest.mark.slow
class TestSession:
    def test_works_and_reports(self, run: Any) -> None:
        """A session that reads a skill, changes a file and runs failing commands reads as what happened, in order."""
        patch = f"apply_patch <<'EOP'\n{PATCH}EOP\n"
        ran = run({"text": "I begin.", **READ_SKILL}, bash(patch), bash("echo shown; exit 3"), DONE, skill="work")
        assert (ran.transcript.fault, ran.final) == (None, ("ok", None)), ran.stderr
        assert (ran.workspace / "made.txt").read_text() == "hi\n"
        assert ran.kinds == [
            "text", "tool_call", "tool_result", "skill", "tool_call", "tool_result", "tool_call", "tool_result",
            "text", "usage_claim", "final",
        ]  # fmt: skip
        assert ran.transcript.skills_used == ("work",)
        assert [e.error for e in ran.transcript.events if isinstance(e, ToolResult)] == [False, False, True]
        assert ran.transcript.tool_calls == {"bash": 2, "apply_patch": 1}
        assert "cat .claude/skills/work/SKILL.md" in str(ran.upstream.requests[0][2]["input"])

    def test_asks_the_gateway_for_the_subject_alone(self, run: Any) -> None:
        """Every request is for the subject's model with the session's key, on the Responses route."""
        ran = run(bash("true"), DONE, prompt="Only this.")
        assert {(path, body["model"]) for path, _, body in ran.upstream.requests} == {("/v1/responses", "replay/demo")}
        headers = ran.upstream.requests[0][1]
        assert {value for name, value in headers.items() if name.lower() == "authorization"} == {
            "Bearer session-key-of-the-test"
        }
        assert ran.upstream.requests[0][2]["input"][-1]["content"][0]["text"] == "Only this."

    def test_no_search_by_the_provider(self, run: Any) -> None:
        """The provider is asked for no search of its own; only the client's tools are offered."""
        kinds = {kind for kind, _ in tools_of(run(DONE))}
        assert kinds <= {"function", "custom", "namespace", "tool_search"}

    def test_claimed_input_includes_what_was_cached(self, run: Any) -> None:
        """The claim is one sum over all turns, and its input holds the cached tokens."""
        [claim] = [e for e in run(bash("true"), DONE).transcript.events if isinstance(e, UsageClaim)]
        assert (claim.usage["input_tokens"], claim.usage["cached_input_tokens"]) == (20, 4)

    def test_commands_are_not_sandboxed_twice(self, run: Any) -> None:
        """Its own sandbox is off: a command may write anywhere that the harness's lets it."""
        ran = run(bash(f"echo hi > {run.place}/home/outside.txt"), DONE)
        assert (run.place / "home/outside.txt").read_text() == "hi\n"
        assert ran.final == ("ok", None)

    def test_commands_see_the_path(self, run: Any) -> None:
        """Commands run in no login shell, so that PATH is the sandbox's, not that of /etc/profile."""
        ran = run(bash('echo "$PATH" > path.txt; rg --version'), DONE, env={"PATH": "/somewhere:/usr/bin:/bin"})
        assert "/somewhere:" in (ran.workspace / "path.txt").read_text()
        assert [e.error for e in ran.transcript.events if isinstance(e, ToolResult)] == [False]

    def test_patching_a_known_model(self, run: Any) -> None:
        """A model that codex knows is offered apply_patch as free text, also behind its provider's name."""
        ran = run({"tools": [("apply_patch", {"input": PATCH})]}, DONE, model=KNOWN)
        assert ("custom", "apply_patch") in tools_of(ran)
        assert (ran.workspace / "made.txt").read_text() == "hi\n"
        assert ran.transcript.tool_calls == {"apply_patch": 1}

    def test_patching_an_unknown_model(self, run: Any) -> None:
        """One that it does not know loses the tool, which it says as a warning that is no failure, and verbosity."""
        ran = run(DONE, options={"verbosity": "high"})
        assert "verbosity" not in (ran.upstream.requests[0][2].get("text") or {})
        assert ("custom", "apply_patch") not in tools_of(ran)
        assert b"Model metadata for `replay/demo` not found" in ran.stdout
        assert ran.final == ("ok", None)

    def test_options(self, run: Any) -> None:
        """Options that it has in its configuration are in what it asks for."""
        ran = run(DONE, model=KNOWN, options={"verbosity": "high", "context_window": "100000"})
        assert (ran.final, ran.upstream.requests[0][2]["text"]["verbosity"]) == (("ok", None), "high")

    @pytest.mark.parametrize("model", ["replay/demo", KNOWN])
    def test_effort(self, run: Any, model: str) -> None:
        """A requested effort is in every request, whether codex knows the model or not."""
        ran = run(bash("true"), DONE, model=model, effort="low")
        assert {body["reasoning"]["effort"] for _, _, body in ran.upstream.requests} == {"low"}

    def test_subagent(self, run: Any) -> None:
        """A subagent's words are not the answer; its tools are absent from the stream and its tokens from the claim."""
        ran = run(
            {"tools": [("spawn_agent", {"message": "SIDE"})]}, bash("sleep 3"), DONE,
            side=[bash("echo in > in.txt", text="side"), {"text": "side too"}],
        )  # fmt: skip
        assert (ran.transcript.fault, ran.final) == (None, ("ok", None))
        assert (ran.workspace / "in.txt").read_text() == "in\n"
        assert ran.transcript.tool_calls == {"spawn_agent": 1, "bash": 1}
        assert [e.text for e in ran.transcript.events if isinstance(e, TextEvent)] == ["Done."]
        [claim] = [e for e in ran.transcript.events if isinstance(e, UsageClaim)]
        assert len(ran.upstream.requests) == 5
        assert claim.usage["output_tokens"] == 9
        assert {body["model"] for _, _, body in ran.upstream.requests} == {"replay/demo"}

    @pytest.mark.parametrize(("deny", "shown"), [((), True), (("Skill",), False)])
    def test_its_own_skills(self, run: Any, deny: tuple[str, ...], shown: bool) -> None:
        """Skills where codex looks for them are shown to its model, unless the arm denies the Skill tool."""
        file = run.place / "workspace/.agents/skills/other/SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text("---\nname: other\ndescription: Something else\n---\n")
        ran = run(DONE, deny=deny)
        assert ("Something else" in str(ran.upstream.requests[0][2]["input"])) is shown

    def test_workspace_does_not_overrule(self, run: Any, upstream: Any) -> None:
        """A repository's own configuration moves no request, starts no program and says nothing; AGENTS.md does."""
        other, ran_by = upstream([DONE]), run.place / "home/ran"
        run_it = json.dumps(["touch", str(ran_by)])
        provider = f'base_url = "{other.url}/v1"\nwire_api = "responses"\nenv_key = "WFBENCH_CODEX_KEY"\nname = "x"\n'
        hook = {"hooks": [{"type": "command", "command": f"touch {ran_by}"}]}
        files = {
            ".codex/config.toml": f'model = "other"\nmodel_provider = "other"\nnotify = {run_it}\n'
            f'developer_instructions = "PLANTED"\n[features]\nhooks = true\n[model_providers.other]\n{provider}'
            f'[model_providers.wfbench]\n{provider}[mcp_servers.planted]\ncommand = "touch"\nargs = ["{ran_by}"]\n',
            ".codex/hooks.json": json.dumps({"hooks": {"SessionStart": [hook], "UserPromptSubmit": [hook]}}),
            "AGENTS.md": "FROM THE REPOSITORY",
        }
        for name, text in files.items():
            (run.place / "workspace" / name).parent.mkdir(exist_ok=True)
            (run.place / "workspace" / name).write_text(text)
        subprocess.run(["git", "init", "-q", str(run.place / "workspace")], check=True)
        ran = run(bash("true"), DONE)
        assert (ran.final, len(other.requests), ran_by.exists()) == (("ok", None), 0, False)
        assert {body["model"] for _, _, body in ran.upstream.requests} == {"replay/demo"}
        told = str(ran.upstream.requests[0][2])
        assert ("PLANTED" in told, "FROM THE REPOSITORY" in told) == (False, True)


@pytest.mark.slow
class TestErrors:
    @pytest.mark.parametrize("status", [401, 403, 429, 500])
    def test_api_error_is_an_error(self, run: Any, status: int) -> None:
        """An API failure ends the turn as failed, after few requests."""
        ran = run({"errors": [status] * 9})
        assert ran.final is not None
        assert ran.final[0] == "error"
        assert 1 <= len(ran.upstream.requests) <= 4
        assert ran.transcript.fault is None
        assert any(isinstance(e, Retry) for e in ran.transcript.events) is (len(ran.upstream.requests) > 1)

    def test_cut_stream(self, run: Any) -> None:
        """A stream that breaks off every time ends in an error, after one retry."""
        ran = run({"text": "hello " * 50, "cut": True})
        assert (ran.transcript.fault, ran.final[0], len(ran.upstream.requests)) == (None, "error", 2)

    def test_incomplete_answer(self, run: Any) -> None:
        """An answer that was cut for its length is a failure."""
        ran = run({"text": "abc", "finish": "max_tokens"})
        assert ran.final == ("error", "Incomplete response returned, reason: max_output_tokens")

    def test_failure_on_standard_error_only(self, run: Any) -> None:
        """What it cannot start with it says on standard error: that is an end in error, not missing evidence."""
        ran = run(DONE, env={"CODEX_HOME": "/nowhere"})
        assert ran.stdout == b""
        assert ran.stderr
        assert (ran.transcript.fault, ran.final[0]) == (None, "error")

    def test_hanging_provider(self, run: Any) -> None:
        """A provider that never answers leaves no end: the wall clock is the harness's."""
        ran = run({"hang": True}, timeout=3)
        assert ran.transcript.fault == "the session was ended from outside and reported no end"


class TestFind:
    def test_pinned(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without one on PATH it is the pinned release's native binary, mounted read-only with its search tool."""
        monkeypatch.setenv("PATH", str(tmp_path))
        runtime = CodexAgent().find("m", tmp_path)
        assert runtime.version == f"codex {pinned_version('codex')}"
        assert [mount.target for mount in runtime.mounts] == [TARGET, "/opt/wfbench/tools"]
        assert runtime.trial == (TARGET, "--version")

    def test_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nowhere to be found, it says how to get it."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path))
        with pytest.raises(AgentUnavailable, match="codex is not installed; run `make agents`"):
            CodexAgent().find("replay/demo", tmp_path)


def test_key_is_in_no_argument_and_no_file() -> None:
    """The session's key travels in the environment alone; the configuration reads as TOML whatever the model's name."""
    model = 'a"b\\c'
    session = SessionInput(prompt="p", model=model, session_id="s", timeout=1, base_url="http://h", key="secret-key")
    invocation = CodexAgent().invocation(session)
    assert not any("secret-key" in word for word in invocation.argv)
    [config] = invocation.files.values()
    assert b"secret-key" not in config
    read = tomllib.loads(config.decode())
    assert (read["model"], read["model_providers"]["wfbench"]["base_url"]) == (model, "http://h/v1")
    assert "secret-key" in invocation.env.values()
    assert not [e for e in CodexAgent().read(b"", None).events if isinstance(e, SkillUse | TextEvent)]
