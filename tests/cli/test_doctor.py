"""`wfbench doctor`: what this machine can do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_wfbench.agents.base import Runtime
from pytest_wfbench.agents.mini import MiniAgent
from pytest_wfbench.cli import main


class TestDoctor:
    def test_well(self, capsys: pytest.CaptureFixture[str]) -> None:
        """On a machine that runs these tests every check is well, as text and as JSON, whatever agents there are."""
        assert main(["doctor"]) == 0
        text = capsys.readouterr().out
        assert text.endswith("cells can run here\n")
        assert "FAIL" not in text
        assert main(["doctor", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["ok"] is True
        assert all(check["ok"] for check in shown["machine"])
        assert {"git", "cache", "uid", "sockets", "setpriv", "workspaces"} < {c["name"] for c in shown["machine"]}
        assert {"agent mini", "agent claude-code"} <= {check["name"] for check in shown["agents"]}

    def test_unwell(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """What is missing is said with the remedy, and the exit status is 1."""
        monkeypatch.setenv("WFBENCH_CACHE_DIR", "/proc/none")
        assert main(["doctor"]) == 1
        text = capsys.readouterr().out
        assert "FAIL cache: /proc/none" in text
        assert "\n     remedy: name another directory in WFBENCH_CACHE_DIR\n" in text
        assert text.endswith("cells cannot run here\n")

    def test_agent_in_the_sandbox(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """An agent is tried where it is going to run; one that does not start there keeps no other from running."""

        def find(self: MiniAgent, model: str, directory: Path) -> Runtime:
            return Runtime("mini-swe-agent 9.9", trial=("/opt/nowhere/agent", "--version"))

        monkeypatch.setattr(MiniAgent, "find", find)
        assert main(["doctor"]) == 0
        text = capsys.readouterr().out
        assert "none agent mini: does not start in the sandbox: " in text

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root has a stand-in")
    @pytest.mark.parametrize("uid", ["0", "-1", "root", "4294967295", "99999999999999999999", "١"])
    def test_bad_uid(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, uid: str) -> None:
        """A uid that sandboxes cannot run under is a usage error."""
        monkeypatch.setenv("WFBENCH_SANDBOX_UID", uid)
        assert main(["doctor"]) == 4
        assert "WFBENCH_SANDBOX_UID" in capsys.readouterr().err

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root has a stand-in")
    def test_other_uid(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """Sandboxes can run under another uid, with directories of its own beside those of the usual one."""
        monkeypatch.setenv("WFBENCH_SANDBOX_UID", "64322")
        assert main(["doctor"]) == 0
        assert "the unused uid 64322" in capsys.readouterr().out
