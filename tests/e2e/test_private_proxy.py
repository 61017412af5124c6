"""A team's own LiteLLM proxy, a second real one, behind the gateway: its model, its keys, its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_wfbench.agents.pinned import cache_root
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES
from tests.e2e.conftest import Ended, require_agent, sweep
from tests.suite import FILES, plant
from tests.upstream import MASTER, PROVIDER_KEY, VIRTUAL, Model, private_proxy, scripted_model

pytestmark = pytest.mark.slow

CACHE = str(cache_root())
AGENTS = ("mini", "claude-code", "codex")
OFFLINE = {
    "provider": "anthropic",
    "model": "claude-sonnet-4-5-20250929",
    "turns": [
        {"tools": [{"name": "bash", "input": {"command": command}}], "usage": {"ordinary_input": 5, "output": 2}}
        for command in ("echo done > a.txt", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
    ],
}


@dataclass(frozen=True)
class Team:
    """A directory with cases, the team's proxy, and the model behind it."""

    root: Path
    url: str
    model: Model

    def sweep(self, name: str, key: str, *subjects: str, more: tuple[str, ...] = ()) -> Ended:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("LITELLM_PROXY_URL", self.url)
            patched.setenv("LITELLM_PROXY_API_KEY", key)
            patched.setenv("WFBENCH_CACHE_DIR", CACHE)
            # A way out that leads nowhere, and is not for what is on this machine.
            patched.setenv("HTTP_PROXY", "http://127.0.0.1:9")
            asked = [f"--wfbench-subject={subject}" for subject in subjects]
            arguments = ("cases", "-k", "finish", "--wfbench-arms=baseline", *asked, *more)
            return sweep(self.root / name, *arguments, cwd=self.root)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    root = tmp_path_factory.mktemp("team")
    plant(root, {**FILES, "cases/cassettes/offline/offline.yaml": json.dumps(OFFLINE)})
    (root / "proxy").mkdir()
    with scripted_model() as model, private_proxy(root / "proxy", model) as url:
        yield Team(root, url, model)


@pytest.fixture(scope="module")
def ended(team: Team) -> Ended:
    """Two agents on the team's model, and one that is replayed, in one sweep; the URL ends with /v1/."""
    for agent in AGENTS:
        require_agent(agent)
    team.model.ledger.clear()
    through = Team(team.root, f"{team.url}/v1/", team.model)
    return through.sweep("good", VIRTUAL, *(f"{agent}:litellm/team-model" for agent in AGENTS), "mini:replay/offline")


def row_of(ended: Ended, subject: str) -> Row:
    assert ended.rows, ended.output[-3000:]
    (row,) = [row for row in ended.rows if row.subject == subject]
    return row


class TestTeamModel:
    def test_all_graded(self, ended: Ended) -> None:
        """Subjects of two providers run side by side; each solves the task."""
        assert ended.status == 0, ended.output[-3000:]
        assert {(row.outcome, row.kind) for row in ended.rows} == {("pass", None)}
        assert len(ended.rows) == len(AGENTS) + 1

    @pytest.mark.parametrize("agent", AGENTS)
    def test_tokens(self, ended: Ended, team: Team, agent: str) -> None:
        """A row's tokens are those that the model behind both proxies billed, to the token, and whole."""
        row = row_of(ended, f"{agent}:litellm/team-model")
        billed = [entry.usage for entry in team.model.ledger if entry.who == agent]
        assert row.requests == len(billed) >= 2
        ordinary, read = (sum(getattr(u, n) or 0 for u in billed) for n in ("ordinary_input", "cache_read_input"))
        assert (row.usage.total_input, row.usage.cache_read_input) == (ordinary + read, read)
        assert row.usage.output == sum(usage.output or 0 for usage in billed)
        assert not row.usage_incomplete

    def test_formats(self, ended: Ended) -> None:
        """Each agent's own wire format reaches the team's proxy; what answers is recorded beside what was asked."""
        spoken = {row_of(ended, f"{agent}:litellm/team-model").cell_id: agent for agent in AGENTS}
        wires = {(spoken[event.cell_id], event.wire) for event in ended.events if event.cell_id in spoken}
        assert wires == {("mini", CHAT), ("claude-code", ANTHROPIC), ("codex", RESPONSES)}
        for agent in AGENTS:
            row = row_of(ended, f"{agent}:litellm/team-model")
            assert (row.requested_model, len(row.models_answered or ())) == ("litellm/team-model", 1)

    def test_preflight(self, ended: Ended, team: Team) -> None:
        """Each model was asked once in each format that its agents speak, and metered; no cassette was."""
        asked = [event for event in ended.events if event.session == "preflight"]
        assert sorted((e.requested_model, e.wire, e.status) for e in asked) == [
            ("litellm/team-model", wire, "success") for wire in (ANTHROPIC, CHAT, RESPONSES)
        ]
        assert sum(entry.who == "preflight" for entry in team.model.ledger) == 3

    def test_keys(self, ended: Ended, team: Team) -> None:
        """The team's key ends at the team's proxy, and the model's own key is nobody else's."""
        assert {entry.headers["authorization"] for entry in team.model.ledger} == {f"Bearer {PROVIDER_KEY}"}
        told = ended.output + "".join(
            path.read_text(errors="replace") for path in ended.results.rglob("*") if path.is_file()
        )
        assert VIRTUAL not in told


class TestDead:
    def test_wrong_key(self, team: Team) -> None:
        """A key that the proxy does not know is said once, with the subject, in the proxy's words: BROKEN, no cell."""
        wrong = "sk-wrong-0123456789abcdef"
        ended = team.sweep("wrong", wrong, "mini:litellm/team-model", more=("--wfbench-runs=3",))
        assert (ended.status, ended.rows) == (1, ())
        assert "mini:litellm/team-model: 401 Authentication Error" in ended.output
        assert "BROKEN" in ended.output
        assert wrong not in ended.output

    def test_unknown_models(self, team: Team) -> None:
        """Models that the proxy does not know are said, each once, and the cells of those that it knows wait, too."""
        before = len(team.model.ledger)
        subjects = ("mini:litellm/nobody", "mini:litellm/no-one", "mini:litellm/team-model")
        ended = team.sweep("unknown", MASTER, *subjects, more=("--wfbench-runs=3",))
        assert (ended.status, ended.rows) == (1, ())
        (line,) = [line for line in ended.output.splitlines() if "Exit: wfbench: " in line]
        assert "mini:litellm/nobody: 400" in line
        assert "mini:litellm/no-one: 400" in line
        assert "mini:litellm/team-model:" not in line
        assert len(team.model.ledger) == before + 1
        told = json.loads((ended.results / "sweep.json").read_text())
        assert told["stop"]["kind"] == "preflight"
        assert "litellm/nobody" in (ended.results / "comment.md").read_text()

    def test_without(self, team: Team) -> None:
        """--wfbench-no-preflight asks nothing beforehand: each cell fails by itself."""
        ended = team.sweep("without", VIRTUAL, "mini:litellm/nobody", more=("--wfbench-no-preflight",))
        assert [row.outcome for row in ended.rows] == ["unusable"]
        assert {row.kind for row in ended.rows} == {"provider-error"}
        assert not [event for event in ended.events if event.session == "preflight"]
