"""What is asked of agents is done or refused."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.agents.base import Runtime
from pytest_wfbench.agents.pinned import pinned_version
from pytest_wfbench.agents.registry import BUILT_IN
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.subject import parse_subject
from pytest_wfbench.options import Options, read_options
from pytest_wfbench.sweep.wishes import agent_options, undeniable, version_problems, wish_problems


def options(**given: Any) -> Options:
    return read_options(lambda spec: given.get(spec.field))


def problems(subject: str, **given: Any) -> list[str]:
    return [str(problem) for problem in wish_problems([parse_subject(subject)], options(**given))]


class TestEffort:
    @pytest.mark.parametrize("agent", ["claude-code", "opencode", "codex", "mini"])
    def test_taken(self, agent: str) -> None:
        """Agents with a model have an effort, and know its common values."""
        assert problems(f"{agent}:replay/demo", effort="high") == []
        assert problems(f"{agent}:openai/gpt-5", effort="low") == []

    @pytest.mark.parametrize(
        ("subject", "effort", "words"),
        [
            ("command:x.sh", "low", "command cannot take the effort 'low'"),
            ("codex:replay/demo", "maximal", "It knows none, minimal, low"),
            ("claude-code:replay/demo", "minimal", "claude-code cannot take the effort 'minimal'"),
            ("mini:openai/gpt-4o", "low", "openai/gpt-4o has no reasoning effort"),
        ],
    )
    def test_refused(self, subject: str, effort: str, words: str) -> None:
        """An effort that the agent does not know, or that its model has not, is refused with what is known."""
        [problem] = problems(subject, effort=effort)
        assert words in problem

    def test_unknown_model(self) -> None:
        """Of a model that the table does not have nothing is known, so it is tried."""
        assert problems("mini:openai/nobody-knows", effort="low") == []


class TestOptions:
    def test_read(self) -> None:
        """What is set for one agent is another's no matter; the last of two values counts."""
        given = ["codex.verbosity = low", "codex.verbosity=high", "opencode.output_limit=9"]
        assert agent_options(given, "codex") == {"verbosity": "high"}
        assert problems("codex:replay/demo", agent_option=given) == []

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("verbosity=low", "does not read AGENT.NAME=VALUE"),
            ("codex.verbosity", "does not read AGENT.NAME=VALUE"),
            ("nobody.x=1", "unknown agent 'nobody'"),
            ("codex.sandbox=off", "codex has no option 'sandbox'. It has context_window, verbosity"),
            ("mini.x=1", "It has none"),
            ("codex.verbosity=loud", "codex.verbosity cannot be 'loud'"),
            ("claude-code.max_output_tokens=1; rm", "cannot be '1; rm'"),
        ],
    )
    def test_refused(self, text: str, words: str) -> None:
        """Anything that an adapter does not let be set is refused by name."""
        [problem] = problems("codex:replay/demo", agent_option=[text])
        assert words in problem


class TestDenied:
    @pytest.mark.parametrize("agent", sorted(BUILT_IN))
    def test_skill(self, agent: str) -> None:
        """Every agent can go without a Skill tool, as the bare task asks."""
        assert undeniable(agent, arm("Skill")) == ()

    def test_others(self) -> None:
        """What an agent has and cannot go without is named; claude passes any name on."""
        assert undeniable("codex", arm("Skill", "Bash")) == ("Bash",)
        assert undeniable("claude-code", arm("mcp__x__y")) == ()
        assert undeniable("opencode", arm("Bash", "mcp__x__y")) == ("mcp__x__y",)


def arm(*denied: str) -> Arm:
    return Arm.model_validate(
        {"name": "a", "tools": {"deny": list(denied)}, "sessions": [{"name": "work", "prompt": "{task}"}]}
    )


class TestVersions:
    def test_strict(self) -> None:
        """An untested release is a problem where that is asked for, with the tested one named; a tested one is none."""
        runtimes = {"codex:m": Runtime("codex 9.9.9"), "mini:m": Runtime("mini-swe-agent 2.0")}
        [problem] = version_problems(runtimes, options(strict_versions=True))
        assert f"codex 9.9.9 is not a tested release: tested is {pinned_version('codex')}" in str(problem)
        assert list(version_problems(runtimes, options())) == []
        tested = {"codex:m": Runtime(f"codex {pinned_version('codex')}")}
        assert list(version_problems(tested, options(strict_versions=True))) == []
