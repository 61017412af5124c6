"""The demo results directory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DEMO = Path(__file__).parents[1] / "data" / "demo_sweep.py"


@pytest.fixture(scope="session")
def demo() -> ModuleType:
    """Builders of rows, manifests and results directories."""
    spec = importlib.util.spec_from_file_location("wfbench_demo_sweep", DEMO)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
