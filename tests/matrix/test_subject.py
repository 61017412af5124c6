"""Names of models that may stand for another one tomorrow."""

from __future__ import annotations

import pytest

from pytest_wfbench.matrix.subject import moves


@pytest.mark.parametrize(
    "model",
    [
        "anthropic/claude-sonnet-latest",
        "anthropic/Claude-LATEST",
        "openai/gpt:latest",
        "openrouter/auto",
        "openrouter/openrouter/auto",
        "ollama/qwen3",
        "ollama/qwen3:latest",
        "ollama/library/qwen3",
        "latest",
    ],
)
def test_moves(model: str) -> None:
    """An alias moves, and so does a local model without a tag, which means the latest."""
    assert moves(model)


@pytest.mark.parametrize(
    "model",
    ["anthropic/claude-sonnet-4-5", "ollama/qwen3:8b", "openai/latest-gpt-5", "openrouter/x/autopilot", "replay/demo"],
)
def test_stays(model: str) -> None:
    """A version stays, whatever else its name holds."""
    assert not moves(model)
