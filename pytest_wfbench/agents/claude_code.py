"""Claude Code: the native binary, headless, over the Anthropic route of the gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_wfbench.agents.base import Invocation, Runtime, SessionInput, SkillSupport, Traits
from pytest_wfbench.agents.claude_stream import read_claude
from pytest_wfbench.agents.events import seal
from pytest_wfbench.agents.native import Native
from pytest_wfbench.agents.skill_files import prompt_with_tool
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.wires import ANTHROPIC

TARGET = "/opt/wfbench/claude"
BINARY = Native(
    agent="claude-code",
    command="claude",
    pinned="@anthropic-ai/claude-code-linux-{node}/claude",
    target=TARGET,
    version=r"(\d+\.\d+\.\d+\S*) ",
)

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "DISABLE_AUTOUPDATER": "1",
}
SETTINGS = ".wfbench/claude.json"
# A repository's own settings can set variables too: none of them is to lead the agent past the gateway.
NO_OTHER_ROAD = {
    "HTTP_PROXY": "",
    "HTTPS_PROXY": "",
    "http_proxy": "",
    "https_proxy": "",
    "NO_PROXY": "*",
    "CLAUDE_CODE_USE_BEDROCK": "",
    "CLAUDE_CODE_USE_VERTEX": "",
    "CLAUDE_CODE_USE_FOUNDRY": "",
}
# Options by the variables that it takes them in: numbers of tokens.
OPTIONS: Mapping[str, str] = {
    "max_output_tokens": "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "max_thinking_tokens": "MAX_THINKING_TOKENS",
}


class ClaudeCodeAgent:
    """Claude Code, with its permissions skipped: the sandbox is the boundary."""

    name = "claude-code"
    uses_model = True
    skills: SkillSupport = "native"
    traits = Traits(
        wire=ANTHROPIC,
        converses=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        options=dict.fromkeys(OPTIONS, r"[1-9][0-9]{0,6}"),
        denies=None,
    )

    def find(self, model: str, directory: Path) -> Runtime:
        """Take the native binary from PATH, else the pinned one from the cache.

        Raises:
            AgentUnavailable: when there is none, or it does not say its version.
        """
        return replace(BINARY.find(), plugins=True)

    def invocation(self, session: SessionInput) -> Invocation:
        """Start it headless, every model name pinned to the subject's, which is the only one the gateway allows."""
        argv = [TARGET, "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
        argv += ["--dangerously-skip-permissions", "--model", session.model]
        argv += ["--resume" if session.turn else "--session-id", session.session_id]
        if session.effort:
            argv += ["--effort", session.effort]
        if session.deny:
            argv.append(f"--disallowedTools={','.join(session.deny)}")
        if session.mcp:
            argv.append(f"--mcp-config={_servers(session.mcp)}")
        if session.plugin:
            argv += ["--plugin-dir", session.plugin]
        argv += ["--settings", f"{session.home}/{SETTINGS}"]
        road = {
            "ANTHROPIC_BASE_URL": session.base_url or "",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": session.model,
            "CLAUDE_CODE_SUBAGENT_MODEL": session.model,
        }
        asked = {OPTIONS[name]: value for name, value in session.options.items()}
        env = {**QUIET, **road, **asked, "ANTHROPIC_AUTH_TOKEN": session.key or ""}
        # Settings that are named on the command line outrank the repository's.
        settings = json.dumps({"env": {**road, **NO_OTHER_ROAD}}).encode()
        prompt = prompt_with_tool(session.prompt, session.skill)
        return Invocation(tuple(argv), env, prompt.encode("utf-8", "replace"), {SETTINGS: settings})

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read ``stream-json``; success needs a result that says so, and an exit status that does not deny it."""
        events, fault = read_claude(stdout, exit_status)
        return seal(events, fault, exit_status)


def _servers(commands: Mapping[str, tuple[str, ...]]) -> str:
    entries = {name: {"type": "stdio", "command": argv[0], "args": argv[1:]} for name, argv in commands.items()}
    return json.dumps({"mcpServers": entries})
