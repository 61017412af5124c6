"""Who judges: every way to name a model, and what is missing for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.gateway.providers import provider_of
from pytest_wfbench.options import BadOption, Options, read_options
from pytest_wfbench.sweep.judge import JudgeRoute, judge_environment, route_of
from pytest_wfbench.wires import CHAT, RESPONSES

PROXY = {"LITELLM_PROXY_URL": "https://llm.example", "LITELLM_PROXY_API_KEY": "sk-x"}
GO = "https://go.example/v1"


def options(**given: Any) -> Options:
    return read_options(lambda spec: given.get(spec.field))


def route(tmp_path: Path, environment: dict[str, str], **given: Any) -> tuple[JudgeRoute | None, list[str]]:
    case_file = tmp_path / "cases" / "a.cases.yaml"
    case_file.parent.mkdir(exist_ok=True)
    found, problems = route_of(options(**given), [case_file], tmp_path, environment)
    return found, [str(problem) for problem in problems]


class TestNames:
    @pytest.mark.parametrize(
        ("typed", "model", "wire", "environment", "url"),
        [
            ("litellm/team", "litellm/team", CHAT, PROXY, "https://llm.example"),
            ("litellm/team", "litellm/team", CHAT, PROXY | {"LITELLM_PROXY_URL": "https://llm.example/v1"}, "https://llm.example"),
            ("litellm/team", "litellm/team", CHAT, PROXY | {"LITELLM_PROXY_URL": "https://llm.example/"}, "https://llm.example"),
            ("litellm/team", "litellm/team", CHAT, PROXY | {"LITELLM_PROXY_URL": "https://llm.example/v1/"}, "https://llm.example"),
            ("codex/gpt-5", "openai/gpt-5", RESPONSES, {"OPENAI_API_KEY": "k"}, "https://api.openai.com"),
            ("glm-5", "opencode-go/glm-5", CHAT, {"OPENCODE_GO_API_KEY": "k"}, "https://go.example"),
            ("glm-5", "opencode-go/glm-5", CHAT, {"OPENCODE_API_KEY": "k"}, "https://go.example"),
            ("anthropic/claude-x", "anthropic/claude-x", CHAT, {"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com"),
            ("openrouter/a/b", "openrouter/a/b", CHAT, {"OPENROUTER_API_KEY": "k"}, "https://openrouter.ai/api"),
            ("ollama/qwen3:8b", "ollama/qwen3:8b", CHAT, {}, "http://127.0.0.1:11434"),
        ],
    )  # fmt: skip
    def test_every_form(
        self, tmp_path: Path, typed: str, model: str, wire: str, environment: dict[str, str], url: str
    ) -> None:
        """Each form of a name leads to one model, in one wire format, at one base URL without ``/v1``."""
        given = {"judge_model": typed, "judge_gateway": GO}
        found, problems = route(tmp_path, environment, **given)
        assert problems == []
        assert found is not None
        assert (found.model, found.wire, found.votes) == (model, wire, 1)
        assert provider_of(model, judge_environment(options(**given), environment)).base_url == url

    def test_the_first_of_two_keys(self) -> None:
        """The key of the default gateway has a name of its own, and a fallback."""
        both = {"OPENCODE_GO_API_KEY": "own", "OPENCODE_API_KEY": "fallback"}
        assert provider_of("opencode-go/x", judge_environment(options(judge_gateway=GO), both)).key == "own"

    @pytest.mark.parametrize(
        ("typed", "environment", "gateway", "named"),
        [
            ("litellm/team", {}, None, ["LITELLM_PROXY_URL", "LITELLM_PROXY_API_KEY"]),
            ("litellm/team", PROXY | {"LITELLM_PROXY_URL": "llm.example"}, None, ["LITELLM_PROXY_URL"]),
            ("litellm/team", PROXY | {"LITELLM_PROXY_URL": "https://"}, None, ["LITELLM_PROXY_URL"]),
            ("litellm/team", PROXY | {"LITELLM_PROXY_API_KEY": " "}, None, ["LITELLM_PROXY_API_KEY"]),
            ("codex/gpt-5", {}, None, ["OPENAI_API_KEY"]),
            ("glm-5", {}, None, ["OPENCODE_GO_API_KEY or OPENCODE_API_KEY", "wfbench_judge_gateway"]),
            ("glm-5", {"OPENCODE_API_KEY": "k"}, "garbage", ["--wfbench-judge-gateway"]),
            ("nobody/x", {}, None, ["names no provider that can be reached"]),
            ("replay/none", {}, None, ["no cassette directory cassettes/none"]),
            ("litellm/", PROXY, None, ["is not a model"]),
            ("lite llm", PROXY, None, ["is not a model"]),
        ],
    )
    def test_what_is_missing_is_named(
        self, tmp_path: Path, typed: str, environment: dict[str, str], gateway: str | None, named: list[str]
    ) -> None:
        """A missing or unfit variable is a usage error that names it, never its value."""
        _, problems = route(tmp_path, environment, judge_model=typed, judge_gateway=gateway)
        told = "\n".join(problems)
        assert all(words in told for words in named), told
        assert len(problems) == len(named)
        assert "garbage" not in told

    def test_replay(self, tmp_path: Path) -> None:
        """Cassettes beside the case file, or above it, judge offline; ``judge`` is the default where it is there."""
        assert route(tmp_path, {}) == (None, [])
        place = tmp_path / "cassettes" / "judge"
        place.mkdir(parents=True)
        found, problems = route(tmp_path, {})
        assert problems == []
        assert found is not None
        assert (found.model, found.cassettes) == ("replay/judge", place)


@pytest.mark.parametrize("votes", ["0", "2", "10"])
def test_votes_are_odd(votes: str) -> None:
    """An even number of votes could be split."""
    with pytest.raises(BadOption, match="--wfbench-judge-votes: must be odd"):
        options(judge_votes=votes)
