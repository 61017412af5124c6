"""What a sweep asks of its agents, seen from the command line: done, told, or refused before anything is spent."""

from __future__ import annotations

import json

import pytest

from pytest_wfbench.agents.pinned import cache_root, pinned_version
from tests.e2e.conftest import require_agent
from tests.suite import Suite
from tests.upstream import WORK, scripted_model

pytestmark = pytest.mark.slow

# Where the agents are, before pytester moves the home.
CACHE = str(cache_root())
ANSWERED = "claude-sonnet-4-5-20250929"
CODEX = "--wfbench-subject=codex:replay/one"
UNTESTED = "import pytest_wfbench.agents.pinned as pinned\npinned.pinned_version = lambda agent: '0.0.1'\n"
USAGE = {"total_input": 5, "output": 2}
CASSETTE = {
    "provider": "openai",
    "model": "gpt-5.5-2026-04-23",
    "turns": [
        {"tools": [{"name": "exec_command", "input": {"cmd": "echo done > a.txt"}}], "usage": USAGE},
        {"text": "Done.", "usage": USAGE},
    ],
}


@pytest.fixture
def codex(suite: Suite) -> Suite:
    """A suite whose task codex solves, with an arm that denies its shell."""
    require_agent("codex")
    suite.monkeypatch.setenv("WFBENCH_CACHE_DIR", CACHE)
    suite.put("cases/cassettes/one/one.yaml", json.dumps(CASSETTE))
    suite.edit("cases/arms.yaml", "  second:\n", "  second:\n    tools: {deny: [Skill, Bash]}\n")
    return suite


class TestReleases:
    def test_untested_is_told(self, codex: Suite) -> None:
        """An untested release runs, console and report name it and the tested one; an arm it cannot do is skipped."""
        codex.put("conftest.py", UNTESTED)
        ran = codex.run(CODEX, "-k", "finish", "--wfbench-arms=baseline,second", agent="")
        words = f"codex {pinned_version('codex')} is not a release that the harness is tested with; that is 0.0.1."
        assert ran.ret == 0, ran.outlines
        assert words in ran.stdout.str()
        assert words in (codex.results / "report.md").read_text()
        outcomes = {row["arm"]: (row["outcome"], row["kind"]) for row in codex.rows()}
        assert outcomes["baseline"] == ("pass", None)
        [skipped] = codex.sweep()["skipped"]
        assert (skipped["kind"], "cannot go without Bash" in json.dumps(skipped)) == ("unsupported", True)

    def test_strict(self, codex: Suite) -> None:
        """With the option it is refused by name, exit 4, and nothing is made."""
        codex.put("conftest.py", UNTESTED)
        ran = codex.run(CODEX, "-k", "finish", "--wfbench-strict-versions", agent="")
        assert ran.ret == 4
        assert "is not a tested release: tested is 0.0.1" in ran.stdout.str() + ran.stderr.str()
        assert not codex.sweeps

    def test_missing(self, codex: Suite) -> None:
        """A missing agent is said with how to get it, exit 4."""
        codex.monkeypatch.setenv("WFBENCH_CACHE_DIR", str(codex.path))
        codex.monkeypatch.setenv("PATH", "/usr/bin:/bin")
        ran = codex.run(CODEX, "-k", "finish", agent="")
        assert ran.ret == 4
        assert "codex is not installed" in ran.stdout.str() + ran.stderr.str()


class TestRefused:
    def test_all_at_once(self, codex: Suite) -> None:
        """An effort that an agent has not, and options that it lets nobody set, are refused together, exit 4."""
        codex.put("pytest.ini", "[pytest]\nwfbench_agent_option =\n  codex.verbosity = loud\n  codex.nothing = 1\n")
        ran = codex.run("-k", "finish", "--wfbench-effort=low", agent="solve.sh")
        told = ran.stdout.str() + ran.stderr.str()
        assert ran.ret == 4
        assert "command cannot take the effort 'low'" in told
        assert "codex.verbosity cannot be 'loud'" in told
        assert "codex has no option 'nothing'" in told
        assert not codex.sweeps


class TestEffort:
    def test_reaches_the_provider(self, suite: Suite) -> None:
        """A requested effort is in every request at the provider, from each agent and through each translation."""
        agents = ("claude-code", "opencode", "codex", "mini")
        for agent in agents:
            require_agent(agent)
        suite.monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-key-of-this-test")
        suite.monkeypatch.setenv("WFBENCH_CACHE_DIR", CACHE)
        suite.edit("cases/tiny.cases.yaml", "session: 40s", "session: 3m")
        subjects = [f"--wfbench-subject={agent}:anthropic/claude-sonnet-4-5" for agent in agents]
        with scripted_model(WORK, ANSWERED) as provider:
            suite.monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
            ran = suite.run(*subjects, "-k", "finish", "--wfbench-effort=high", agent="")
        assert ran.ret == 0, ran.outlines
        assert {row["agent"]: row["effort"] for row in suite.rows()} == dict.fromkeys(agents, "high")
        assert {model for row in suite.rows() for model in row["models_answered"]} == {ANSWERED}
        bodies = [entry.body for entry in provider.ledger if "claude" in entry.model]
        assert len(bodies) >= sum(row["requests"] for row in suite.rows()) >= len(agents)
        assert all(body["thinking"]["budget_tokens"] > 1024 for body in bodies if body.get("tools")), bodies
