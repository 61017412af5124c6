"""What reports say of a judge."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench.evidence.manifest import SubjectInfo
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.judging import doubts, family_of, gateway_of, votes


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-sonnet-4-5-20250929", "Claude"),
        ("anthropic/claude-x", "Claude"),
        ("openrouter/openai/gpt-5.5", "GPT"),
        ("o3-mini", "GPT"),
        ("gpt-oss-120b", "GPT"),
        ("gemini-3-pro", "Gemini"),
        ("qwen3:8b", "Qwen"),
        ("deepseek-r1-distill-qwen", "Qwen"),
        ("team-model", None),
        ("promo3-x", None),
    ],
)
def test_families(model: str, family: str | None) -> None:
    """A model's family is told by its name, behind whatever gateway."""
    assert family_of(model) == family


def test_gateways() -> None:
    """A maker's own API is no gateway that two models share, and a cassette is none at all."""
    found = [gateway_of(m) for m in ("litellm/a", "openrouter/a/b", "glm-5", "openai/x", "codex/x", "replay/x", "")]
    assert found == ["litellm", "openrouter", "opencode-go", None, None, None, None]


VERDICT = {
    "pass": True,
    "score": 1.0,
    "reason": "It is.",
    "votes": 1,
    "agreement": 1.0,
    "requests": 1,
    "cost_usd": 0.01,
}


def told(demo: ModuleType, judge_model: str, subject: str, answered: str, *judges: dict[str, Any]) -> list[str]:
    of = [
        demo.row(f"q{n}", "baseline", task_kind="question", models_answered=(answered,), judge=VERDICT | judge)
        for n, judge in enumerate(judges)
    ]
    plain = demo.sweep(of)
    options = plain.options.model_copy(update={"judge_model": judge_model})
    infos = (SubjectInfo(subject=f"mini:{subject}", agent="mini", model=subject),)
    sweep = plain.model_copy(update={"options": options, "subjects": infos})
    return [*doubts(Rows(tuple(of)), sweep), *votes(Rows(tuple(of)), sweep)]


class TestSentences:
    def test_one_family(self, demo: ModuleType) -> None:
        """It is said where a model judges one of its own family, by the names that answered."""
        lines = told(demo, "litellm/a", "openrouter/b", "claude-opus-5", {"model": "claude-haiku-4-5"})
        assert lines[0] == "Judge and subject are of one model family (Claude): a model is kind to its like."

    def test_one_gateway(self, demo: ModuleType) -> None:
        """It is said where both are reached by one road."""
        lines = told(demo, "litellm/a", "litellm/b", "claude-opus-5", {"model": "gpt-5-mini"})
        assert lines[0] == "Judge and subject are reached through one gateway (litellm): its faults are in both."

    def test_nothing_to_doubt(self, demo: ModuleType) -> None:
        """Another family by another road needs no word."""
        lines = told(demo, "openai/gpt-5-mini", "litellm/b", "claude-opus-5", {"model": "gpt-5-mini"})
        assert lines == ["1 request of the judge, which no arm's numbers count, cost $0.0100."]

    def test_votes(self, demo: ModuleType) -> None:
        """Several votes are told by how far they agree, and where they were split; an unknown cost stays unknown."""
        split = {"votes": 3, "agreement": 2 / 3, "cost_usd": None, "requests": 3}
        lines = told(demo, "openai/x", "litellm/b", "claude-x", {"votes": 3, "requests": 3}, split)
        assert lines == [
            "The judge's votes agree by 83 % on average. They were split on q1.",
            "6 requests of the judge, which no arm's numbers count, cost an unknown sum.",
        ]
