"""What the tests of workspaces share: a sandbox, and a workshop with a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from tests.workspace.workshop import Workshop


@pytest.fixture(scope="session")
def sandbox() -> Bubblewrap:
    return make_bubblewrap()


@pytest.fixture
def shop(sandbox: Bubblewrap, tmp_path: Path) -> Workshop:
    return Workshop(sandbox, tmp_path)
