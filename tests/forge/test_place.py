"""Which pull request a CI job belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_wfbench.forge.github import GitHub
from pytest_wfbench.forge.gitlab import GitLab
from pytest_wfbench.forge.place import BadPlace, Nowhere, forge_of

GITHUB = {"GITHUB_REPOSITORY": "team/tool", "GITHUB_REF": "refs/pull/12/merge", "GITHUB_TOKEN": "t"}
GITLAB = {"GITLAB_CI": "true", "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "3", "GITLAB_TOKEN": "t"}


class TestGitHub:
    def test_of_the_ref(self) -> None:
        """The ref of a pull request's job holds its number."""
        found = forge_of(GITHUB)
        assert isinstance(found, GitHub)
        assert (found.repository, found.number, found.rest.root) == ("team/tool", 12, "https://api.github.com")

    @pytest.mark.parametrize("name", ["pull_request", "issue"])
    def test_of_the_event(self, tmp_path: Path, name: str) -> None:
        """Where the ref does not, the event that started the job does."""
        path = tmp_path / "event.json"
        path.write_text(json.dumps({name: {"number": 34}}))
        found = forge_of(GITHUB | {"GITHUB_REF": "refs/heads/main", "GITHUB_EVENT_PATH": str(path)})
        assert isinstance(found, GitHub)
        assert found.number == 34

    @pytest.mark.parametrize(
        ("without", "said"),
        [("GITHUB_REPOSITORY", "no repository"), ("GITHUB_REF", "no pull request"), ("GITHUB_TOKEN", "no token")],
    )
    def test_something_lacks(self, without: str, said: str) -> None:
        """What is not there is named."""
        with pytest.raises(Nowhere, match=said):
            forge_of({name: value for name, value in GITHUB.items() if name != without})

    @pytest.mark.parametrize("text", ["[]", "{", '{"pull_request": {}}'])
    def test_odd_event(self, tmp_path: Path, text: str) -> None:
        """An event that does not read is none."""
        path = tmp_path / "event.json"
        path.write_text(text)
        with pytest.raises(Nowhere):
            forge_of(GITHUB | {"GITHUB_REF": "", "GITHUB_EVENT_PATH": str(path)})

    @pytest.mark.parametrize("name", ["tool", "a/b/c", "a/../b", "https://x/y"])
    def test_no_repository(self, name: str) -> None:
        """A name that is no repository's is refused."""
        with pytest.raises(BadPlace, match="owner/name"):
            forge_of(GITHUB, repository=name)

    @pytest.mark.parametrize("url", ["ftp://x", "https://user:word@host/api", "api.github.com"])
    def test_bad_address(self, url: str) -> None:
        """An API's address holds no credentials."""
        with pytest.raises(BadPlace, match="https://host/path"):
            forge_of(GITHUB | {"GITHUB_API_URL": url})


class TestGitLab:
    def test_of_the_job(self) -> None:
        """The variables of a merge request's job hold all."""
        found = forge_of(GITLAB)
        assert isinstance(found, GitLab)
        assert (found.project, found.number, found.rest.root) == ("5", 3, "https://gitlab.com/api/v4")

    @pytest.mark.parametrize(("without", "said"), [("CI_MERGE_REQUEST_IID", "no merge"), ("GITLAB_TOKEN", "no token")])
    def test_something_lacks(self, without: str, said: str) -> None:
        """What is not there is named."""
        with pytest.raises(Nowhere, match=said):
            forge_of({name: value for name, value in GITLAB.items() if name != without})
