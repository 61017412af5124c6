"""Agents by name: the built-in ones, and those that other distributions add."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from pytest_wfbench.agents.base import Agent

GROUP = "pytest_wfbench.agents"

BUILT_IN: Mapping[str, str] = {
    "claude-code": "pytest_wfbench.agents.claude_code:ClaudeCodeAgent",
    "codex": "pytest_wfbench.agents.codex:CodexAgent",
    "command": "pytest_wfbench.agents.command:CommandAgent",
    "mini": "pytest_wfbench.agents.mini:MiniAgent",
    "opencode": "pytest_wfbench.agents.opencode:OpencodeAgent",
}


class UnknownAgent(LookupError):
    """No agent, or more than one, has the name."""


def known_agents() -> tuple[str, ...]:
    """Return the names of all agents, sorted; none is imported."""
    return tuple(sorted({*BUILT_IN, *(point.name for point in _offered())}))


def get_agent(name: str) -> Agent:
    """Import one agent and make it.

    Another distribution adds one by an entry point of the group ``pytest_wfbench.agents`` that names a class (or any
    callable without arguments) giving an ``Agent``.

    Raises:
        UnknownAgent: when nothing has the name, or two things do, or what has it is not called by it.
    """
    sources = [*_built_in(name), *(point for point in _offered() if point.name == name)]
    if not sources:
        raise UnknownAgent(f"unknown agent {name!r}; known are {', '.join(known_agents())}")
    if len(sources) > 1:
        raise UnknownAgent(f"agent {name!r} is defined twice: {', '.join(point.value for point in sources)}")
    agent: Agent = sources[0].load()()
    if agent.name != name:
        raise UnknownAgent(f"agent {name!r} calls itself {agent.name!r} ({sources[0].value})")
    return agent


def _built_in(name: str) -> list[EntryPoint]:
    return [EntryPoint(name, BUILT_IN[name], GROUP)] if name in BUILT_IN else []


def _offered() -> tuple[EntryPoint, ...]:
    """What other distributions offer: to look through all that are installed takes 15 ms, and cells ask."""
    return _found(entry_points, tuple(sys.path))


@lru_cache(maxsize=4)
def _found(look: Callable[..., Iterable[EntryPoint]], path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(look(group=GROUP))
