"""What attacks start from: raids, each run once for all tests that look at it, and a session at a door."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from filelock import FileLock

from tests.attack.raid import Raid, Raiders
from tests.gateway.conftest import (
    LIVE,
    OpenSession,
    Session,
    gateway,
    open_session,
    polyglot,
    provider,
    rogue,
    usage_path,
)

__all__ = ["gateway", "open_session", "polyglot", "provider", "raid", "rogue", "usage_path"]


@pytest.fixture(scope="session")
def raid(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Raiders], Raid]:
    """Run a named raid once a session, whichever worker asks first; the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def run(name: str, raiders: Raiders) -> Raid:
        place, done = shared / f"raid-{name}", shared / f"raid-{name}.json"
        with FileLock(shared / f"raid-{name}.lock"):
            if not done.exists():
                place.mkdir()
                ended = raiders.run(place)
                done.write_text(json.dumps([ended.status, ended.output]))
        status, output = json.loads(done.read_text())
        return Raid(place, status, output)

    return run


@pytest.fixture
def live(open_session: OpenSession) -> Session:
    """A session whose model is at a provider on this machine."""
    return open_session("live", models=(LIVE,))
