"""What an agent left, told apart from what the machine could not do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_wfbench.cell import changes
from pytest_wfbench.cell.changes import Unreadable, changes_of
from pytest_wfbench.workspace.program import ProgramFailed

CHANGE: Any = SimpleNamespace(something=True)


def outcome(monkeypatch: pytest.MonkeyPatch, answers: list[Any], works: bool = True) -> Any:
    """What comes of it where reading gives these answers, one after the other."""
    left = iter(answers)

    def changed(*given: Any, **named: Any) -> Any:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(changes, "changed", changed)
    sandbox: Any = SimpleNamespace(run=lambda command: SimpleNamespace(ok=works))
    workspace: Any = SimpleNamespace()
    return changes_of(workspace, sandbox)


class TestTold:
    def test_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A program that died once, and not because of what it read, is no one's miss."""
        assert outcome(monkeypatch, [ProgramFailed("answer: exit status None"), CHANGE]) is CHANGE

    def test_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What cannot be read a second time either, in a sandbox that works, is the candidate's doing."""
        failed = ProgramFailed("seal: x\nPermissionError: [Errno 13] d")
        with pytest.raises(Unreadable, match="cannot be read: PermissionError"):
            outcome(monkeypatch, [failed, failed])

    def test_sandbox(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sandbox that runs nothing is the machine's."""
        with pytest.raises(ProgramFailed):
            outcome(monkeypatch, [ProgramFailed("x"), CHANGE], works=False)
