"""Claude Code: the native binary, headless, over the Anthropic route of the gateway."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_wfbench.agents.base import AgentUnavailable, Invocation, Runtime, SessionInput, SkillSupport
from pytest_wfbench.agents.claude_stream import read_claude
from pytest_wfbench.agents.events import seal
from pytest_wfbench.agents.pinned import agents_directory
from pytest_wfbench.agents.skill_files import prompt_with_tool
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.sandbox.process import run_process
from pytest_wfbench.sandbox.spec import Bind

TARGET = "/opt/wfbench/claude"
VERSION_TIMEOUT = 20.0
REMEDY = "run `make agents`, or put the native `claude` on PATH"

# The spellings that Node gives to a machine's architecture, in the names of the native packages.
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "DISABLE_AUTOUPDATER": "1",
}


class ClaudeCodeAgent:
    """Claude Code, with its permissions skipped: the sandbox is the boundary."""

    name = "claude-code"
    uses_model = True
    skills: SkillSupport = "native"

    def find(self, model: str, directory: Path) -> Runtime:
        """Take the native binary from PATH, else the pinned one from the cache.

        Raises:
            AgentUnavailable: when there is none, or it does not say its version.
        """
        binary = next(_binaries(), None)
        if binary is None:
            raise AgentUnavailable(f"claude-code is not installed; {REMEDY}")
        return Runtime(version=_version(binary), mounts=(Bind(binary, TARGET),), trial=(TARGET, "--version"))

    def invocation(self, session: SessionInput) -> Invocation:
        """Start it headless, every model name pinned to the subject's, which is the only one the gateway allows."""
        argv = [TARGET, "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
        argv += ["--dangerously-skip-permissions", "--model", session.model, "--session-id", session.session_id]
        if session.effort:
            argv += ["--effort", session.effort]
        if session.deny:
            argv.append(f"--disallowedTools={','.join(session.deny)}")
        env = {
            **QUIET,
            "ANTHROPIC_BASE_URL": session.base_url or "",
            "ANTHROPIC_AUTH_TOKEN": session.key or "",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": session.model,
            "CLAUDE_CODE_SUBAGENT_MODEL": session.model,
        }
        prompt = prompt_with_tool(session.prompt, session.skill)
        return Invocation(argv=tuple(argv), env=env, stdin=prompt.encode("utf-8", "replace"))

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read ``stream-json``; success needs a result that says so, and an exit status that does not deny it."""
        events, fault = read_claude(stdout)
        return seal(events, fault, exit_status)


def _binaries() -> Iterator[Path]:
    """Yield native binaries, best first; a script on PATH would need its whole installation beside it."""
    if (on_path := shutil.which("claude")) and _is_native(Path(on_path)):
        yield Path(on_path).resolve()
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    packages = agents_directory() / "node_modules" / "@anthropic-ai"
    pinned = packages / f"claude-code-linux-{architecture}" / "claude"
    if os.access(pinned, os.X_OK):
        yield pinned


def _is_native(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False


def _version(binary: Path) -> str:
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.defpath, "DISABLE_AUTOUPDATER": "1"}
        ran = run_process([str(binary), "--version"], env=env, cwd=Path(home), timeout=VERSION_TIMEOUT)
    found = re.match(rb"(\d+\.\d+\.\d+\S*) ", ran.stdout)
    if not ran.ok or found is None:
        raise AgentUnavailable(f"{binary} does not say its version (exit status {ran.status}); {REMEDY}")
    return f"claude-code {found[1].decode()}"
