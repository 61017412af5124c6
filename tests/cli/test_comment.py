"""``wfbench comment --post`` as a CI job runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_wfbench.cli import main
from tests.forge.standin import StandIn, serving


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """The job of a pull request, with a token."""
    with serving(StandIn()) as state:
        for name in ("GITLAB_CI", "GH_TOKEN", "GITHUB_EVENT_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("GITHUB_API_URL", state.root)
        monkeypatch.setenv("GITHUB_REPOSITORY", "team/tool")
        monkeypatch.setenv("GITHUB_REF", "refs/pull/7/merge")
        monkeypatch.setenv("GITHUB_TOKEN", "planted-token-0123456789")
        yield state


@pytest.fixture
def results(demo: ModuleType, tmp_path: Path) -> Path:
    directory: Path = demo.write(tmp_path / "results")
    return directory


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert "planted-token" not in captured.out + captured.err
    return captured.err


class TestPost:
    def test_posts_and_updates(self, standin: StandIn, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The comment is posted as comment.md has it, and is up to date the next time."""
        assert main(["comment", str(results), "--key", "smoke", "--post"]) == 0
        assert said(capsys) == "wfbench: posted a comment (1)\n"
        assert standin.comments[0]["body"] == (results / "comment.md").read_text()
        assert standin.tokens == {"Bearer planted-token-0123456789"}
        assert main(["comment", str(results), "--key", "smoke", "--post"]) == 0
        assert said(capsys) == "wfbench: the comment is up to date (1)\n"

    def test_fork(self, standin: StandIn, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A fork's token may not write: that is said, and is no failure."""
        standin.refuse = 403
        assert main(["comment", str(results), "--post"]) == 0
        assert "not posted:" in (told := said(capsys))
        assert "the token may not write there" in told

    def test_no_token(
        self, standin: StandIn, results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without a token nothing is sent, and that is no failure either."""
        monkeypatch.delenv("GITHUB_TOKEN")
        assert main(["comment", str(results), "--post"]) == 0
        assert said(capsys) == "wfbench: not posted: no token: set GITHUB_TOKEN or GH_TOKEN\n"
        assert not standin.tokens

    def test_broken_forge(self, standin: StandIn, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A repository that is not there fails the job."""
        assert main(["comment", str(results), "--post", "--repo", "team/tool", "--pr", "8"]) == 0
        capsys.readouterr()
        standin.before = lambda method, path: standin.comments.clear()
        standin.refuse = 418
        assert main(["comment", str(results), "--post"]) == 1
        assert "HTTP 418" in said(capsys)

    def test_bad_name(self, standin: StandIn, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A repository that is no name is a usage error."""
        assert main(["comment", str(results), "--post", "--repo", "tool"]) == 4
        assert "write owner/name" in said(capsys)
