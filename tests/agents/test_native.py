"""Where a native agent is looked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_wfbench.agents import native
from pytest_wfbench.agents.base import AgentUnavailable
from pytest_wfbench.agents.native import TOOLS, Native, search_tool, with_tools
from pytest_wfbench.sandbox.spec import Bind

ECHO = Native("tool", "tool", "@maker/tool-linux-{node}/bin/tool", "/opt/wfbench/tool", r"(tool-\S+)")
PLATFORM = f"@maker/tool-linux-{native._NODE.get(native.platform.machine(), native.platform.machine())}/bin/tool"


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH and a cache with nothing in them."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("WFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def binary(path: Path) -> Path:
    """A native binary, which prints its arguments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile("/usr/bin/echo", path)
    path.chmod(0o755)
    return path


def found(version: str = r"(\S+)") -> Path:
    runtime = Native(ECHO.agent, ECHO.command, ECHO.pinned, ECHO.target, version).find()
    [mount] = runtime.mounts
    assert isinstance(mount, Bind)
    return mount.source


class TestFind:
    def test_path_first(self, tmp_path: Path) -> None:
        """A native binary on PATH comes before the pinned one."""
        on_path = binary(tmp_path / "bin/tool")
        binary(native.agents_directory() / "node_modules" / PLATFORM)
        assert found() == on_path

    @pytest.mark.parametrize("place", ["lib/node_modules", "lib/node_modules/@maker/tool/node_modules"])
    def test_beside_the_script(self, tmp_path: Path, place: str) -> None:
        """Where a Node script is on PATH, it is the binary of the package for this platform that it would start."""
        script = tmp_path / "lib/node_modules/@maker/tool/bin/tool.js"
        script.parent.mkdir(parents=True)
        script.write_text("#!/usr/bin/env node\n")
        script.chmod(0o755)
        (tmp_path / "bin/tool").symlink_to(script)
        beside = binary(tmp_path / place / PLATFORM)
        assert found() == beside

    def test_pinned(self) -> None:
        """Without one on PATH it is the pinned one."""
        pinned = binary(native.agents_directory() / "node_modules" / PLATFORM)
        assert found() == pinned

    def test_missing(self) -> None:
        """One that is nowhere is said to be missing, with how to get it."""
        with pytest.raises(AgentUnavailable, match="tool is not installed; run `make agents`"):
            found()

    def test_silent(self, tmp_path: Path) -> None:
        """One that does not say its version is not run."""
        binary(tmp_path / "bin/tool")
        with pytest.raises(AgentUnavailable, match="does not say its version"):
            found(r"(\d+)")


class TestSearchTool:
    def test_pinned(self) -> None:
        """The pinned one is mounted with nothing else in its directory."""
        pinned = binary(native.agents_directory() / "node_modules/@openai/codex-linux-x64/vendor/x/codex-path/rg")
        assert search_tool() == (Bind(pinned.parent, TOOLS),)

    def test_of_the_system(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One of the system is in every sandbox; one elsewhere on PATH is in none."""
        monkeypatch.setattr(native, "_SYSTEM", tmp_path / "bin")
        assert search_tool() is None
        binary(tmp_path / "bin/rg")
        assert search_tool() == ()
        monkeypatch.setattr(native, "_SYSTEM", Path("/usr"))
        assert search_tool() is None

    def test_arguments(self) -> None:
        """The command's own words are its last ones, and need no quoting."""
        assert with_tools(["/a b", "$c"])[-3:] == (TOOLS, "/a b", "$c")
