"""mini-swe-agent: its loop and its bash tool, with a model that speaks to the gateway (``mini_main``)."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path

from pytest_wfbench.agents.base import (
    OPENAI_EFFORTS,
    AgentUnavailable,
    Invocation,
    Runtime,
    SessionInput,
    SkillSupport,
    Traits,
)
from pytest_wfbench.agents.events import read_events, seal
from pytest_wfbench.agents.skill_files import prompt_with_file, with_skill_uses
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.sandbox.bytecode import bytecode, library
from pytest_wfbench.sandbox.spec import Data

# Not in the home: what is there the agent's commands can put something else in the place of, before a second prompt.
TARGET = "/opt/wfbench/mini"
_MODULES = ("__init__", "agents.__init__", "agents.clipping", "agents.mini_road")
CONFIG = ".mini-swe-agent"
# What it needs to read and to import, without the configuration that it would write.
_TRIAL = (
    "import os; os.environ['MSWEA_SILENT_STARTUP'] = '1'; import minisweagent; "
    "from importlib.metadata import version; print('mini-swe-agent', version('mini-swe-agent'))"
)
REMEDY = "install it beside the harness: pip install 'pytest-wfbench[mini]'"


def program() -> tuple[Data, ...]:
    """Return the files of the directory that the interpreter runs: the program, and what of this package it imports."""
    return (*library(TARGET, *_MODULES), Data(f"{TARGET}/__main__.pyc", bytecode("agents.mini_main")))


class MiniAgent:
    """mini-swe-agent, run by the harness's own interpreter, which the sandbox mounts."""

    name = "mini"
    uses_model = True
    skills: SkillSupport = "file"
    # Its one tool is a shell.
    traits = Traits(
        efforts=OPENAI_EFFORTS,
        denies=frozenset({"Skill", "Agent", "Task", "WebFetch", "WebSearch"}),
        converses=True,
    )

    def find(self, model: str, directory: Path) -> Runtime:
        """Look for the package below the interpreter's prefix, the only place that a sandbox has.

        Raises:
            AgentUnavailable: when it is missing or lies elsewhere.
        """
        spec = importlib.util.find_spec("minisweagent")
        if spec is None or spec.origin is None:
            raise AgentUnavailable(f"mini-swe-agent is missing; {REMEDY}")
        origin = Path(spec.origin).resolve()
        if not any(origin.is_relative_to(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix)):
            raise AgentUnavailable(f"mini-swe-agent lies in {spec.origin}, outside {sys.prefix}; {REMEDY}")
        version = importlib.metadata.version("mini-swe-agent")
        trial = ("python3", "-I", "-c", _TRIAL)
        return Runtime(version=f"mini-swe-agent {version}", mounts=program(), plugins=True, trial=trial)

    def invocation(self, session: SessionInput) -> Invocation:
        """Start the program in isolated mode: nothing of the workspace is imported."""
        settings = {
            "model": session.model,
            "base_url": session.base_url or "",
            "timeout": session.timeout,
            "effort": session.effort,
            "converses": session.turns > 1,
        }
        return Invocation(
            argv=("python3", "-I", TARGET, json.dumps(settings)),
            env={
                "WFBENCH_MINI_KEY": session.key or "",
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_GLOBAL_CONFIG_DIR": f"{session.home}/{CONFIG}",
                "PYDANTIC_DISABLE_PLUGINS": "__all__",
            },
            stdin=prompt_with_file(session.prompt, session.skill).encode("utf-8", "replace"),
        )

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read the program's events, and conclude which skill files were read."""
        events, fault = read_events(stdout)
        return seal(with_skill_uses(events), fault, exit_status)
