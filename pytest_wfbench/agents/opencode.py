"""opencode: the native binary, headless, over the Chat Completions route of the gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_wfbench.agents.base import (
    OPENAI_EFFORTS,
    AgentUnavailable,
    Invocation,
    Runtime,
    SessionInput,
    SkillSupport,
    Traits,
)
from pytest_wfbench.agents.events import seal
from pytest_wfbench.agents.native import Native, search_tool, with_tools
from pytest_wfbench.agents.opencode_stream import read_opencode
from pytest_wfbench.agents.skill_files import prompt_with_tool
from pytest_wfbench.agents.stream import Transcript

TARGET = "/opt/wfbench/opencode"
KEY = "WFBENCH_OPENCODE_KEY"
CONFIG = ".wfbench/opencode.json"
PROVIDER = "wfbench"
BINARY = Native(
    agent="opencode",
    command="opencode",
    pinned="opencode-linux-{node}/bin/opencode",
    target=TARGET,
    version=r"(\d+\.\d+\.\d+\S*)",
)
QUIET = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    # What lies in the workspace may be the agent's own, and is not to move the model or its permissions.
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
}
# A plugin in the workspace would run inside the agent, and could write its events. One of the agent's two loaders minds
# neither the variable above nor `--pure`; both look only when it starts.
_GUARD = """\
if find -H .opencode/plugin .opencode/plugins -mindepth 1 2>/dev/null | grep -q . ||
    grep -qs plugin opencode.json opencode.jsonc .opencode/opencode.json .opencode/opencode.jsonc; then
    echo "the workspace has plugins for opencode, which would run inside it: leave them out of the task's files" >&2
    exit 3
fi
exec "$0" "$@"
"""
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
# Which permission covers a tool, by the tool's name in arms.
PERMISSIONS: Mapping[str, str] = {
    "Skill": "skill",
    "Bash": "bash",
    "Read": "read",
    "Edit": "edit",
    "Write": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "Agent": "task",
    "Task": "task",
    "WebFetch": "webfetch",
    "WebSearch": "websearch",
    "TodoWrite": "todowrite",
}
# Options by the names that its configuration has for them: what it takes for the model's limits, in tokens. Without
# them it never compacts a conversation, and asks for at most 32,000 tokens of output.
LIMITS: Mapping[str, str] = {"context_limit": "context", "output_limit": "output"}


class OpencodeAgent:
    """opencode, with what it asks permission for approved: the sandbox is the boundary."""

    name = "opencode"
    uses_model = True
    skills: SkillSupport = "native"
    traits = Traits(
        efforts=OPENAI_EFFORTS,
        options=dict.fromkeys(LIMITS, r"[1-9][0-9]{0,6}"),
        denies=frozenset(PERMISSIONS),
        converses=True,
    )

    def find(self, model: str, directory: Path) -> Runtime:
        """Take the native binary from PATH, else the pinned one from the cache, and ``rg``, which its skills need.

        Raises:
            AgentUnavailable: when either is missing, or the binary does not say its version.
        """
        tools = search_tool()
        if tools is None:
            raise AgentUnavailable("opencode needs ripgrep (`rg`) for its skills; run `make agents`, or install it")
        return BINARY.find(tools)

    def invocation(self, session: SessionInput) -> Invocation:
        """Start it headless, unless there are plugins. A title is given, so that none is asked for."""
        which = ["--continue"] if session.turn else ["--title", "t"]
        argv = ["/bin/sh", "-c", _GUARD, TARGET, "run", "--format", "json", "--auto", "--pure", *which]
        return Invocation(
            argv=with_tools(argv),
            env={**QUIET, "OPENCODE_CONFIG": f"{session.home}/{CONFIG}", KEY: session.key or ""},
            stdin=prompt_with_tool(session.prompt, session.skill).encode("utf-8", "replace"),
            files={CONFIG: json.dumps(_config(session)).encode()},
        )

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read its events; success needs a last step that says it was the last, and no error."""
        events, fault = read_opencode(stdout, exit_status)
        return seal(events, fault, exit_status)


def _config(session: SessionInput) -> dict[str, Any]:
    """Return its configuration: one provider with one model, which is used for everything."""
    model = f"{PROVIDER}/{session.model}"
    options = {"reasoningEffort": session.effort} if session.effort else {}
    limits = {"context": 0, "output": 0} | {LIMITS[name]: int(value) for name, value in session.options.items()}
    return {
        "model": model,
        "small_model": model,
        "share": "disabled",
        "autoupdate": False,
        # What it changed is the harness's to find out; without this it keeps a repository of its own.
        "snapshot": False,
        "lsp": False,
        "formatter": False,
        "enabled_providers": [PROVIDER],
        # With the rest of the workspace's configuration it would pass these over.
        "instructions": [f"{session.workspace}/{name}" for name in INSTRUCTIONS],
        "mcp": {name: {"type": "local", "command": argv} for name, argv in session.mcp.items()},
        "permission": {PERMISSIONS[tool]: "deny" for tool in session.deny},
        "provider": {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": PROVIDER,
                "options": {"baseURL": f"{session.base_url or ''}/v1", "apiKey": f"{{env:{KEY}}}"},
                "models": {session.model: {"name": session.model, "options": options, "limit": limits}},
            }
        },
    }
