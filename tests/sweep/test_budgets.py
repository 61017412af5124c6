"""Budgets that cannot be kept, told before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_wfbench.gateway.api import Terms
from pytest_wfbench.gateway.cassette import load_cassettes
from pytest_wfbench.sweep.budgets import unpriced

PRICED = {"input_cost_per_token": 1.0, "output_cost_per_token": 1.0}
SCRIPT = """\
model: {model}
provider: anthropic
turns:
  - {{text: Done., usage: {{}}}}
"""


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"known": PRICED, "half": {"input_cost_per_token": 1.0}}))
    return path


def cell(model: str, agent: str = "mini", rubric: str | None = None) -> Any:
    class Subject(SimpleNamespace):
        def __str__(self) -> str:
            return f"{agent}:{model}"

    return SimpleNamespace(
        subject=Subject(agent=agent, model=model),
        arm=SimpleNamespace(name="a", sessions=(SimpleNamespace(name="work"),)),
        task=SimpleNamespace(id="t", rubric=rubric),
        variation=0,
        run=1,
    )


def told(terms: Terms, *cells: Any, judge: str | None = None, scripts: dict[str, Any] | None = None) -> list[str]:
    found = list(unpriced(terms, cells, scripts or {}, judge))
    assert all("--wfbench-prices" in problem.remedy for problem in found)
    return [str(problem) for problem in found]


class TestUnpriced:
    def test_models(self, prices: Path) -> None:
        """Every model that is asked for needs both prices, each is told once; an agent without a model needs none."""
        terms = Terms(max_cost=1.0, prices=prices)
        cells = [cell(f"openai/{name}") for name in ("known", "half", "stranger", "stranger")]
        found = told(terms, *cells, cell("x.sh", "command"))
        assert len(found) == 2
        assert all(name in text for name, text in zip(("openai/half", "openai/stranger"), found, strict=True))

    def test_without_a_budget(self, prices: Path) -> None:
        """Who sets no budget needs no price."""
        assert told(Terms(prices=prices, max_parallel=1), cell("openai/stranger")) == []

    def test_scripts(self, prices: Path, tmp_path: Path) -> None:
        """A replayed model has the price of whom its scripts name."""
        scripts = {}
        for name in ("known", "stranger"):
            (place := tmp_path / name).mkdir()
            (place / "one.yaml").write_text(SCRIPT.format(model=name))
            scripts[f"replay/{name}"] = load_cassettes(place)
        terms = Terms(cell_max_cost=1.0, prices=prices)
        assert told(terms, cell("replay/known"), scripts=scripts) == []
        (found,) = told(terms, cell("replay/stranger"), scripts=scripts)
        assert "anthropic/stranger has no price in mine's table" in found

    def test_judge(self, prices: Path) -> None:
        """The judge of a rubric counts to the sweep's budget, and to no cell's."""
        asked = cell("openai/known", rubric="good?")
        assert told(Terms(cell_max_cost=1.0, prices=prices), asked, judge="openai/stranger") == []
        assert told(Terms(max_cost=1.0, prices=prices), cell("openai/known"), judge="openai/stranger") == []
        (found,) = told(Terms(max_cost=1.0, prices=prices), asked, judge="openai/stranger")
        assert "openai/stranger" in found
