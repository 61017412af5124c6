"""Two files that exchange their names, and what is left where that is cut short."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_wfbench.apply.places import Place, Root
from pytest_wfbench.apply.swap import OLD, Moved, Swap, exchange, link_and_rename, settle
from pytest_wfbench.digests import digest_bytes


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    (tmp_path / "file").write_text("old")
    (tmp_path / "staged").write_text("new")
    with Root(tmp_path) as root:
        yield root.place("file"), root.place("staged")


def told(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.iterdir())}


@pytest.mark.parametrize("swapping", [exchange, link_and_rename])
def test_swap(pair: tuple[Place, Place], tmp_path: Path, swapping: Swap) -> None:
    """Each has the other's name, and no third is left."""
    swapping(*pair)
    assert told(tmp_path) == {"file": "new", "staged": "old"}


@pytest.mark.parametrize("swapping", [exchange, link_and_rename])
@pytest.mark.parametrize("absent", ["file", "staged"])
def test_absent(pair: tuple[Place, Place], tmp_path: Path, swapping: Swap, absent: str) -> None:
    """Where one is not there nothing changes."""
    (tmp_path / absent).unlink()
    before = told(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        swapping(*pair)
    assert told(tmp_path) == before


def test_replaced(pair: tuple[Place, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that somebody puts there after the link was made is seen, and stays."""
    link = os.link

    def slow(*given: object, **named: object) -> None:
        link(*given, **named)  # type: ignore[arg-type]
        (tmp_path / "draft").write_text("mine")
        (tmp_path / "draft").rename(tmp_path / "file")

    monkeypatch.setattr(os, "link", slow)
    with pytest.raises(Moved):
        link_and_rename(*pair)
    assert told(tmp_path) == {"file": "mine", "staged": "new"}


def test_cut_after_the_link(pair: tuple[Place, Place], tmp_path: Path) -> None:
    """Of an exchange that was cut short after its first step nothing is left."""
    os.link(tmp_path / "file", tmp_path / f"staged{OLD}")
    assert settle(*pair, "base") is None
    assert told(tmp_path) == {"file": "old", "staged": "new"}


def test_cut_before_the_last_rename(pair: tuple[Place, Place], tmp_path: Path) -> None:
    """One that was cut short before its last step is brought to its end."""
    os.link(tmp_path / "file", tmp_path / f"staged{OLD}")
    (tmp_path / "staged").rename(tmp_path / "file")
    assert settle(*pair, "base") is None
    assert told(tmp_path) == {"file": "new", "staged": "old"}


def test_cut_and_edited(pair: tuple[Place, Place], tmp_path: Path) -> None:
    """What is neither a second name of the file nor what the repository's history has is kept, and named."""
    (tmp_path / f"staged{OLD}").write_text("somebody's")
    left = settle(*pair, "base")
    assert left is not None
    assert told(tmp_path) == {"file": "old", "staged": "new", f"staged{OLD}": "somebody's"}
    assert settle(*pair, digest_bytes(b"somebody's")) is None
    assert told(tmp_path) == {"file": "old", "staged": "new"}
