"""Places on this machine, before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.options import read_options
from pytest_wfbench.sandbox.identity import BadIdentity
from pytest_wfbench.sweep import places
from pytest_wfbench.sweep.places import touching, unwritable


@pytest.mark.parametrize("typed", ["zero", "a: b", ": "])
def test_no_uid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    """A uid that is none is told with its variable, as it was typed, and the remedy."""

    def choose() -> Any:
        raise BadIdentity(f"VARIABLE: {typed!r} is no uid above 0: name one that no account has")

    monkeypatch.setattr(places, "choose_identity", choose)
    (problem,) = unwritable(read_options(lambda _: None), tmp_path)
    assert str(problem) == f"VARIABLE: {typed!r} is no uid above 0. Name one that no account has"


def test_touching(tmp_path: Path) -> None:
    """What holds a hidden place, lies in one or is one is told, also where a link leads there; a neighbour is not."""
    (tmp_path / "hidden/deep").mkdir(parents=True)
    (tmp_path / "hidden-not").mkdir()
    (tmp_path / "link").symlink_to("hidden/deep")
    hidden = [tmp_path / "hidden"]
    names = {".": "holds hidden", "hidden": "holds hidden", "hidden/deep": "lies in hidden", "link": "lies in hidden"}
    assert {name: touching(tmp_path / name, hidden) for name in names} == names
    assert touching(tmp_path / "hidden-not", hidden) is None
