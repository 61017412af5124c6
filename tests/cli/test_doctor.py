"""`wfbench doctor`: what this machine can do."""

from __future__ import annotations

import json

import pytest

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
        assert {"git", "cache"} < {check["name"] for check in shown["machine"]}
        assert {"agent mini", "agent claude-code"} <= {check["name"] for check in shown["agents"]}

    def test_unwell(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """What is missing is said with the remedy, and the exit status is 1."""
        monkeypatch.setattr("pytest_wfbench.cli.doctor.NEEDED", "git-that-is-not-there")
        assert main(["doctor"]) == 1
        text = capsys.readouterr().out
        assert "FAIL git: not found\n     remedy: install git (on Debian: apt install git)\n" in text
        assert text.endswith("cells cannot run here\n")
