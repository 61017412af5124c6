"""Shared by all tests: pytester, and the small suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.data import demo_sweep
from tests.suite import FILES, Suite

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _no_step_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of tests are not to be summed up where these tests run as a job."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    """A suite that needs no model."""
    for name in ("CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    made = Suite(pytester, monkeypatch)
    for name, text in FILES.items():
        made.put(name, text)
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="session")
def demo() -> ModuleType:
    """Builders of rows, manifests and results directories."""
    return demo_sweep
