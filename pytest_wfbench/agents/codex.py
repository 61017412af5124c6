"""codex: the native binary, headless, over the Responses route of the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pytest_wfbench.agents.base import OPENAI_EFFORTS, Invocation, Runtime, SessionInput, SkillSupport, Traits
from pytest_wfbench.agents.codex_stream import read_codex
from pytest_wfbench.agents.events import seal
from pytest_wfbench.agents.native import Native, search_tool, with_tools
from pytest_wfbench.agents.skill_files import prompt_with_file, with_skill_uses
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.wires import RESPONSES

TARGET = "/opt/wfbench/codex"
HOME = ".codex"
KEY = "WFBENCH_CODEX_KEY"
SKILL_TOOL = "Skill"
# The npm entry point is a Node script; the binary lies in the platform's package.
BINARY = Native(
    agent="codex",
    command="codex",
    pinned="@openai/codex-linux-{node}/vendor/*/bin/codex",
    target=TARGET,
    version=r"codex-cli (\d+\.\d+\.\d+\S*)",
)


class CodexAgent:
    """codex, without the sandbox of its own, which cannot nest: the harness's is the boundary.

    It looks for skills elsewhere than where the harness keeps them, so it is told which file to read.
    """

    name = "codex"
    uses_model = True
    skills: SkillSupport = "file"
    traits = Traits(
        wire=RESPONSES,
        converses=True,
        efforts=OPENAI_EFFORTS,
        options={"verbosity": "low|medium|high", "context_window": "[1-9][0-9]{0,6}"},
        denies=frozenset({SKILL_TOOL, "WebFetch", "WebSearch"}),
    )

    def find(self, model: str, directory: Path) -> Runtime:
        """Take the native binary from PATH, else the pinned one from the cache, and ``rg`` where there is one.

        Raises:
            AgentUnavailable: when there is none, or it does not say its version.
        """
        return BINARY.find(search_tool() or ())

    def invocation(self, session: SessionInput) -> Invocation:
        """Start it headless; the configuration lies in its home, the key is in the environment alone."""
        going_on = ["resume", "--last"] if session.turn else []
        argv = [TARGET, "exec", *going_on, "--json", "--dangerously-bypass-approvals-and-sandbox"]
        argv += ["--skip-git-repo-check", "-"]
        return Invocation(
            argv=with_tools(argv),
            env={"CODEX_HOME": f"{session.home}/{HOME}", KEY: session.key or ""},
            stdin=prompt_with_file(session.prompt, session.skill).encode("utf-8", "replace"),
            files={f"{HOME}/config.toml": "".join(f"{line}\n" for line in _config(session)).encode()},
        )

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read its events, and conclude which skill files were read; success needs a turn that says it completed."""
        events, fault = read_codex(stdout, exit_status)
        return seal(with_skill_uses(events), fault, exit_status)


def _config(session: SessionInput) -> Iterator[str]:
    """Yield the lines of ``config.toml``. A JSON text is a TOML text too."""
    yield f"model = {json.dumps(session.model)}"
    yield 'model_provider = "wfbench"'
    if session.effort:
        yield f"model_reasoning_effort = {json.dumps(session.effort)}"
    if verbosity := session.options.get("verbosity"):
        yield f"model_verbosity = {json.dumps(verbosity)}"
    if window := session.options.get("context_window"):
        yield f"model_context_window = {int(window)}"
    # The provider's own search leads out of the sandbox, and it is on by default.
    yield 'web_search = "disabled"'
    yield "check_for_update_on_startup = false"
    # A login shell would take PATH from /etc/profile, where the task's interpreter is not.
    yield "allow_login_shell = false"
    yield from ("[analytics]", "enabled = false")
    yield from ("[skills]", f"include_instructions = {json.dumps(SKILL_TOOL not in session.deny)}")
    yield from ("[skills.bundled]", "enabled = false")
    yield from ("[model_providers.wfbench]", 'name = "wfbench"', f'env_key = "{KEY}"', 'wire_api = "responses"')
    yield f"base_url = {json.dumps((session.base_url or '') + '/v1')}"
    yield from ("supports_websockets = false", "request_max_retries = 1", "stream_max_retries = 1")
    for name, argv in session.mcp.items():
        yield f"[mcp_servers.{json.dumps(name)}]"
        yield from (f"command = {json.dumps(argv[0])}", f"args = {json.dumps(argv[1:])}", "required = true")
