"""The provider that the commands of the documentation ask: a model on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.upstream import Model, scripted_model

SOLUTION = """echo 'import sys; print("Hello, %s!" % [*sys.argv, "world"][1])' >greet.py"""
ANSWERED = "claude-sonnet-4-5-20250929"


@pytest.fixture
def provider() -> Iterator[Model]:
    """It solves the README's task."""
    with scripted_model(SOLUTION, ANSWERED) as server:
        yield server
