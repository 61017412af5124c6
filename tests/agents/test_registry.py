"""Agents by name."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from pytest_wfbench.agents import registry
from pytest_wfbench.agents.registry import BUILT_IN, UnknownAgent, get_agent, known_agents


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Entry points as if other distributions had declared them."""
    declared: list[EntryPoint] = []

    def entry_points(group: str, name: str | None = None) -> list[EntryPoint]:
        return [point for point in declared if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    return declared


class Mine:
    name = "mine"


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in(name: str) -> None:
    """Each built-in agent loads and is called by its name."""
    assert get_agent(name).name == name


def test_unknown_lists_the_known() -> None:
    """An unknown name is answered with those that exist."""
    with pytest.raises(UnknownAgent, match=r"'nope'; known are claude-code, codex, command, mini, opencode"):
        get_agent("nope")


def test_outside_agent(points: list[EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another distribution adds one without touching this one."""
    monkeypatch.setitem(sys.modules, "outside", type(sys)("outside"))
    monkeypatch.setattr(sys.modules["outside"], "Mine", Mine, raising=False)
    points.append(EntryPoint("mine", "outside:Mine", registry.GROUP))
    assert isinstance(get_agent("mine"), Mine)
    assert "mine" in known_agents()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mini", "outside:Mine", "defined twice"),
        ("other", "pytest_wfbench.agents.mini:MiniAgent", "calls itself 'mini'"),
    ],
)
def test_confusion(points: list[EntryPoint], name: str, value: str, words: str) -> None:
    """A name stands for one agent, and the agent agrees."""
    points.append(EntryPoint(name, value, registry.GROUP))
    with pytest.raises(UnknownAgent, match=words):
        get_agent(name)


def test_is_lazy() -> None:
    """Listing the agents imports none of them."""
    code = (
        "import sys; from pytest_wfbench.agents.registry import known_agents as k; k(); print('\\n'.join(sys.modules))"
    )
    ran: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert not {"pytest_wfbench.agents.mini", "pytest_wfbench.agents.claude_code", "minisweagent"} & set(loaded)
