"""Pins, and the script that installs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_wfbench.agents import pinned

PROJECT = Path(pinned.__file__).parents[2]
NPM = """\
#!/bin/sh
echo "$@" >> "$NPM_LOG"
[ "$1" = ci ] || { echo 1.0; exit; }
[ -z "$NPM_FAILS" ] && mkdir node_modules
"""
LOCK = json.loads((pinned.PINS / "package-lock.json").read_text())


class TestPins:
    @pytest.mark.parametrize("agent", sorted(pinned.PACKAGES))
    def test_exact(self, agent: str) -> None:
        """Each pinned agent has one exact version, and the lock holds the same."""
        version = pinned.pinned_version(agent)
        assert re.fullmatch(r"\d+\.\d+\.\d+", str(version))
        assert LOCK["packages"][f"node_modules/{pinned.PACKAGES[agent]}"]["version"] == version

    def test_unpinned(self) -> None:
        """An agent that does not come from npm has no pin."""
        assert pinned.pinned_version("mini") is None

    def test_integrity(self) -> None:
        """Every package of the lock is bound by its hash, and no registry's address is in it."""
        packages = {name: package for name, package in LOCK["packages"].items() if name}
        assert all(package["integrity"].startswith("sha512-") for package in packages.values())
        assert not any("resolved" in package for package in packages.values())


class TestCacheDirectory:
    def test_configured(self, tmp_path: Path) -> None:
        """The variable decides."""
        directory = pinned.agents_directory({"WFBENCH_CACHE_DIR": str(tmp_path)})
        assert directory == tmp_path / "agents" / pinned.lock_digest()

    def test_root_and_user(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Root's is the system's, which the sandbox's uid can read; a user's is below the home."""
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert pinned.cache_root({}) == Path("/var/cache/pytest-wfbench")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert pinned.cache_root({}).name == "pytest-wfbench"
        assert pinned.cache_root({}) != Path("/var/cache/pytest-wfbench")


@pytest.fixture
def script(tmp_path: Path) -> dict[str, str]:
    """The environment of the script, with an npm that only makes the directory."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    path = f"{npm.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return {"PATH": path, "PYTHON": sys.executable, "WFBENCH_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path),
            "NPM_LOG": str(tmp_path / "log"), "NPM_FAILS": ""}  # fmt: skip


def install(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", PROJECT / "scripts/agents.sh"], env=env, capture_output=True, text=True, check=False)


class TestScript:
    def test_installs_once(self, script: dict[str, str]) -> None:
        """It installs without running packages' scripts, publishes by one rename, and the second time does nothing."""
        assert install(script).returncode == 0
        target = pinned.agents_directory(script)
        assert (target / "node_modules").is_dir()
        assert target.stat().st_mode & 0o777 == 0o755
        assert [p.name for p in target.parent.iterdir()] == [target.name]
        again = install(script)
        assert (again.returncode, "already in" in again.stderr) == (0, True)
        calls = Path(script["NPM_LOG"]).read_text()
        assert calls.count("ci --ignore-scripts") == 1

    def test_failure_leaves_nothing(self, script: dict[str, str]) -> None:
        """A failed installation is not published and cleans up."""
        assert install({**script, "NPM_FAILS": "1"}).returncode != 0
        assert list(pinned.agents_directory(script).parent.iterdir()) == []

    def test_names_the_same_place(self, script: dict[str, str]) -> None:
        """Script and harness agree on the directory, through one program."""
        ran = subprocess.run(
            [sys.executable, "-m", "pytest_wfbench.agents.pinned"],
            env=script,
            cwd=PROJECT,
            capture_output=True,
            check=True,
        )
        assert Path(ran.stdout.decode().strip()) == pinned.agents_directory(script)
