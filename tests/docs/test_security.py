"""docs/security.md promises nothing without a test, and counts what is tried as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import generate
from .markdown import ROOT, first_column, table
from .tried import defined_tests, hostile_scripts

PAGE = ROOT / "docs" / "security.md"
REMEDY = "run python tests/docs/generate.py"


def ids(cell: str) -> list[str]:
    return re.findall(r"`(tests/[^`]+)`", cell)


def missing(name: str) -> bool:
    """Whether an id, or a file for all of its tests, is not there."""
    path = ROOT / name.partition("::")[0]
    if not path.is_file():
        return True
    known = defined_tests(path)
    return name not in known if "::" in name else not known


PROMISES = table(PAGE, "Promised")


class TestPromises:
    @pytest.mark.parametrize("row", PROMISES, ids=[row[0] for row in PROMISES])
    def test_each_has_tests(self, row: list[str]) -> None:
        """Every promise names tests that attack it, and each of them exists."""
        assert ids(row[2])
        assert [name for name in ids(row[2]) if missing(name)] == []

    def test_missing_ones_are_seen(self) -> None:
        """A file, class or test that is not there, and a file without tests, are found to be missing."""
        here = "tests/docs/test_security.py"
        assert not missing(f"{here}::TestPromises::test_missing_ones_are_seen")
        assert not missing(f"{here}::TestPromises")
        assert not missing(here)
        gone = [f"{here}::TestPromises::test_gone", f"{here}::TestGone", f"{here}::test_each_has_tests"]
        assert all(missing(name) for name in [*gone, "tests/docs/test_gone.py", "tests/suite.py"])

    def test_every_area_stands_for_a_promise(self) -> None:
        """Every file of attacks is linked by a promise."""
        linked = {name.partition("::")[0] for row in PROMISES for name in ids(row[2])}
        attacks = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/attack").glob("test_*.py")}
        assert attacks <= linked


class TestTried:
    def test_counts(self) -> None:
        """The table of what is tried has every file of attacks and faults, with what pytest collects of it."""
        assert PAGE.read_text() == generate.security_page(), REMEDY
        files = {path.relative_to(ROOT).as_posix() for area in ("attack", "faults")
                 for path in (ROOT / "tests" / area).glob("test_*.py")}  # fmt: skip
        assert {row[3].strip("`") for row in table(PAGE, "Tried")} - {"–"} == files

    def test_scripts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Scripts count by name, in place and by way of a local name, however they are wrapped."""
        text = """
from tests.attack.raid import Raiders
SCRIPTS = {"a": "1", "b": "2"}
MORE = {"c": "3"}
BY_NAME = Raiders(SCRIPTS)
def fixture(raid):
    scripts = {name: text for name, text in MORE.items()}
    return raid("x", Raiders(scripts)), Raiders(scripts={"d": "4"}, arm="planned")
"""
        name = f"scripts_{tmp_path.name}".replace("-", "_")
        monkeypatch.setattr("tests.docs.tried.ROOT", tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        assert hostile_scripts(path) == 4

    def test_limits(self) -> None:
        """The table of limits has every limit of a task."""
        from pytest_wfbench.matrix.task import Limits

        assert set(first_column(PAGE, "Limits")) == {"timeout", *Limits.model_fields}
