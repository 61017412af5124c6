"""docs/providers.md: its commands run, against a model on this machine in each provider's place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_wfbench.gateway.providers import KNOWN
from tests.e2e.conftest import require_agent
from tests.upstream import Model, scripted_model

from .conftest import SOLUTION
from .markdown import ROOT, Block, first_column, marked, table
from .session import Shell, settled
from .test_run import GREET, greet, rows, shell  # noqa: F401  (fixtures)

PAGE = ROOT / "docs" / "providers.md"
KEY = "sk-of-the-documentation-0123456789"


@pytest.fixture
def model() -> Iterator[Model]:
    """A model that solves the README's task, and calls itself what it was asked for as."""
    with scripted_model(SOLUTION, "") as server:
        yield server


def block(name: str) -> Block:
    [found] = marked(PAGE, "run", name)
    return found


def test_table() -> None:
    """The table has every provider, its key and its address, and no other."""
    assert first_column(PAGE, "Providers") == [*(f"{known.name}/…" for known in KNOWN), "replay/…"]
    for known, (_, _, key, address) in zip(KNOWN, table(PAGE, "Providers"), strict=False):
        assert key == (f"`{known.key_variable}`" if known.key_variable else "none")
        assert address.startswith(f"`{known.url_variable}`")


@pytest.mark.slow
class TestCommands:
    def test_ollama(self, greet: Shell, model: Model) -> None:  # noqa: F811
        """The local model solves the README's task, for nothing and without a key."""
        asked = Shell(greet.directory, {"OLLAMA_HOST": model.url.removeprefix("http://")})
        ran = asked.run(f"set -e\n{block('ollama').text}")
        assert ran.status == 0, ran.output
        [row] = rows(greet.directory)
        assert (row["outcome"], row["models_answered"], row["cost_usd"]) == ("pass", ["qwen3:8b"], 0)
        assert not [entry for entry in model.ledger if "authorization" in entry.headers]

    def test_openrouter(self, greet: Shell, model: Model) -> None:  # noqa: F811
        """The free route wants its key, and gets it; what it costs is unknown."""
        export, command = block("openrouter").text.splitlines()
        assert export == "export OPENROUTER_API_KEY=…"
        asked = Shell(greet.directory, {"OPENROUTER_API_KEY": KEY, "OPENROUTER_BASE_URL": f"{model.url}/v1"})
        ran = asked.run(command)
        assert ran.status == 0, ran.output
        [row] = rows(greet.directory)
        assert (row["outcome"], row["models_answered"]) == ("pass", ["qwen/qwen3-coder:free"])
        assert {entry.headers["authorization"] for entry in model.ledger} == {f"Bearer {KEY}"}

    def test_team(self, greet: Shell, model: Model) -> None:  # noqa: F811
        """The team's model answers both agents."""
        require_agent("claude-code")
        url, key, command = block("team").text.splitlines()
        assert (url, key) == ("export LITELLM_PROXY_URL=https://llm.example", "export LITELLM_PROXY_API_KEY=…")
        asked = Shell(greet.directory, {"LITELLM_PROXY_URL": model.url, "LITELLM_PROXY_API_KEY": KEY})
        ran = asked.run(command)
        assert ran.status == 0, ran.output
        assert {row["agent"]: row["outcome"] for row in rows(greet.directory)} == {
            "claude-code": "pass",
            "mini": "pass",
        }

    def test_dead(self, greet: Shell) -> None:  # noqa: F811
        """A proxy that is not there ends the sweep as it is shown."""
        [(ran, shown)] = greet.play([block("dead")])
        assert ran.status == 1
        told = " ".join(" ".join(settled(ran.output)).split())
        assert " ".join(" ".join(settled(shown)).split()) in told
