"""Which case files lie under pytest's arguments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.discover import case_files

Found = Callable[..., list[str]]

LISTING = """\
import pytest
class One(pytest.Item):
    def runtest(self): pass
class CaseFile(pytest.File):
    def collect(self):
        yield One.from_parent(self, name="one")
def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(".cases.yaml"):
        return CaseFile.from_parent(parent, path=file_path)
"""


@pytest.fixture
def found(pytester: pytest.Pytester) -> Found:
    """Case files found for arguments, relative to the directory pytest is started in."""

    def find(*arguments: str) -> list[str]:
        config = pytester.parseconfig("-p", "no:wfbench", *arguments)
        return [os.path.relpath(path, pytester.path) for path in case_files(config)]

    return find


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


class TestArguments:
    def test_named_and_below(self, pytester: pytest.Pytester, found: Found) -> None:
        """A case file is named, or lies below a named directory; it is found once."""
        make(pytester.path, "cases/a.cases.yaml", "cases/sub/b.cases.yaml", "other/c.cases.yaml", "cases/arms.yaml")
        assert found("cases") == ["cases/a.cases.yaml", "cases/sub/b.cases.yaml"]
        assert found("other/c.cases.yaml", "cases", "cases/a.cases.yaml") == [
            "other/c.cases.yaml",
            "cases/a.cases.yaml",
            "cases/sub/b.cases.yaml",
        ]
        assert found("other", "-k", "x") == ["other/c.cases.yaml"]

    def test_node_ids(self, pytester: pytest.Pytester, found: Found) -> None:
        """A pasted node id names its file, whatever its brackets hold."""
        make(pytester.path, "cases/a.cases.yaml")
        assert found("cases/a.cases.yaml::one[workflow-mini:replay/x-1]") == ["cases/a.cases.yaml"]
        assert found("cases/a.cases.yaml::one[a-command:x::y.cases.yaml-1]") == ["cases/a.cases.yaml"]

    def test_spelling(self, pytester: pytest.Pytester, found: Found) -> None:
        """Two spellings of a path are one file, by the name that pytest gives it."""
        make(pytester.path, "cases/a.cases.yaml", "b/x")
        assert found("b/../cases/a.cases.yaml", "./cases", str(pytester.path / "cases")) == ["cases/a.cases.yaml"]

    def test_missing(self, pytester: pytest.Pytester, found: Found) -> None:
        """A case file that is named but missing is not lost, so that it can be told."""
        make(pytester.path, "gone.cases.yaml/x")
        assert found("a.cases.yaml") == ["a.cases.yaml"]
        assert found("gone.cases.yaml") == []

    def test_testpaths(self, pytester: pytest.Pytester, found: Found) -> None:
        """Without arguments it is `testpaths` that count."""
        make(pytester.path, "cases/a.cases.yaml", "other/b.cases.yaml")
        pytester.makeini("[pytest]\ntestpaths = other")
        assert found() == ["other/b.cases.yaml"]


class TestPassedOver:
    def test_as_pytest_does(self, pytester: pytest.Pytester, found: Found) -> None:
        """Hidden and built directories, environments, caches, and what was ignored by name are passed over."""
        make(
            pytester.path,
            *(
                f"{name}/a.cases.yaml"
                for name in (".git", "build", "node_modules", "env", "__pycache__", "conda", "ok")
            ),
            *(f"{name}/a.cases.yaml" for name in ("ignored", "globbed1", "globbed2")),
            "env/pyvenv.cfg",
            "conda/conda-meta/history",
            ".#a.cases.yaml",
            "odd.cases.yaml/b.cases.yaml",
        )
        arguments = (".", "--ignore", "ignored", "--ignore-glob", "globbed*", "--ignore=ok/b.cases.yaml")
        make(pytester.path, "ok/b.cases.yaml")
        assert found(*arguments) == ["odd.cases.yaml/b.cases.yaml", "ok/a.cases.yaml"]
        assert "env/a.cases.yaml" in found(*arguments, "--collect-in-virtualenv")

    def test_named_patterns(self, pytester: pytest.Pytester, found: Found) -> None:
        """`norecursedirs` may hold paths."""
        make(pytester.path, "a/skip/a.cases.yaml", "b/skip/b.cases.yaml")
        pytester.makeini("[pytest]\nnorecursedirs = a/skip")
        assert found(".") == ["b/skip/b.cases.yaml"]

    def test_links_to_directories(self, pytester: pytest.Pytester, found: Found) -> None:
        """A link to a directory is not followed, so no loop is walked; a link to a file is told later."""
        make(pytester.path, "a/a.cases.yaml")
        (pytester.path / "a" / "loop").symlink_to("..")
        (pytester.path / "a" / "b.cases.yaml").symlink_to("gone")
        assert found("a") == ["a/a.cases.yaml", "a/b.cases.yaml"]

    def test_depth(self, pytester: pytest.Pytester, found: Found) -> None:
        """A tree deeper than the interpreter's stack is walked."""
        path = pytester.path
        for _ in range(60):
            path = path / ("d" * 20)
        make(path, "a.cases.yaml")
        assert len(found(".")) == 1


class TestOrder:
    def test_as_pytest_collects(self, pytester: pytest.Pytester, found: Found) -> None:
        """Files come in the order in which pytest itself collects them."""
        names = [
            "b.cases.yaml",
            "a/z.cases.yaml",
            "c/a.cases.yaml",
            "a/a/x.cases.yaml",
            "a.cases.yaml",
            "a-b/x.cases.yaml",
        ]
        make(pytester.path, *names)
        pytester.makeconftest(LISTING)
        result = pytester.runpytest("--collect-only", "-q", "-p", "no:wfbench", ".")
        listed = [line.removesuffix("::one") for line in result.outlines if line.endswith("::one")]
        assert len(listed) == len(names)
        assert found(".") == listed
