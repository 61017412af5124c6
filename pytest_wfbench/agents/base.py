"""The protocol of an agent adapter, and the values that pass it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.sandbox.spec import HOME, WORKSPACE, Mount
from pytest_wfbench.wires import CHAT


class AgentUnavailable(Exception):
    """The agent cannot run here; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Runtime:
    """An installed agent: its version as it prints it, and the read-only mounts it needs.

    ``reports_events`` is false where it cannot say which tools it called: it is unsupported in arms with skills.
    ``mcp`` is true where it can start stdio MCP servers, ``plugins`` where it can load a plugin from a directory, or
    is told the files of its skills, and names these ``<plugin>:<skill>``. ``trial`` is a command that shows in a
    sandbox with these mounts that the agent starts there, and prints its version; nothing is tried where there is none.
    """

    version: str
    mounts: tuple[Mount, ...] = ()
    reports_events: bool = True
    mcp: bool = False
    plugins: bool = False
    trial: tuple[str, ...] = ()


@dataclass(frozen=True)
class SessionInput:
    """All that an agent is told of one session.

    ``prompt`` is verbatim. ``base_url`` and ``key`` reach the gateway; both none where the agent has no model.
    ``skill`` is the skill the session is to use, ``deny`` the tools it goes without, ``workspace`` and ``home`` paths
    in the sandbox, ``session_id`` a UUID. ``effort`` and ``options`` are such as the agent's traits allow. ``timeout``
    is in seconds. ``mcp`` holds the command of each MCP server that it is to start, by name. ``plugin`` is the
    directory of an external plugin that it is to load, whose skills ``skill`` names as ``<plugin>:<skill>``. Of a
    conversation of several ``turns`` this is number ``turn``, from 0: a later one finds the same home, and goes on with
    what is there.
    """

    prompt: str
    model: str
    session_id: str
    timeout: float
    base_url: str | None = None
    key: str | None = None
    skill: str | None = None
    deny: tuple[str, ...] = ()
    effort: str | None = None
    workspace: str = WORKSPACE
    home: str = HOME
    mcp: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    plugin: str | None = None
    turn: int = 0
    turns: int = 1


@dataclass(frozen=True)
class Invocation:
    """How to start it: argv, environment, standard input, and files to place in the private home."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)


SkillSupport = Literal["native", "file", "none"]
# What OpenAI's formats know as an effort.
OPENAI_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True)
class Traits:
    """What of a sweep's wishes an agent can meet; anything else is refused, or its cells are not run.

    ``efforts`` are the values of ``--wfbench-effort`` that it knows, ``options`` the names that may be set for it, each
    with a pattern that the whole value matches. ``denies`` are tools that an arm may deny it, because it can go without
    or never has them; none where it passes any name on. ``wire`` is the format in which it speaks to its model.
    ``converses`` says that it can be given a further prompt in the conversation that it keeps in its home.
    """

    efforts: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    denies: frozenset[str] | None = frozenset({"Skill"})
    wire: str = CHAT
    converses: bool = False


class Agent(Protocol):
    """One agent: one file, one class.

    Attributes:
        name: what stands before the colon of a subject.
        uses_model: whether a gateway session is opened for it.
        skills: ``native`` (it has a Skill tool), ``file`` (it is told which file to read), ``none``.
        traits: what else it can be asked for.
    """

    name: str
    uses_model: bool
    skills: SkillSupport
    traits: Traits

    def find(self, model: str, directory: Path) -> Runtime:
        """Find the agent on this machine.

        Args:
            model: what follows the subject's colon (for ``command`` the script, relative to ``directory``).
            directory: where pytest was started.

        Raises:
            AgentUnavailable: with the remedy.
        """
        ...

    def invocation(self, session: SessionInput) -> Invocation:
        """Say how one session is started."""
        ...

    def read(self, stdout: bytes, exit_status: int | None) -> Transcript:
        """Read the captured stream into the common one, to the end of file.

        ``exit_status`` is none when the session was ended from outside.
        """
        ...
