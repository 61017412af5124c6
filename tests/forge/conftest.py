"""A forge that stands in for GitHub and GitLab, and a pull request on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_wfbench.forge.github import GitHub
from pytest_wfbench.forge.gitlab import GitLab
from pytest_wfbench.forge.http import Rest
from tests.forge.standin import StandIn, serving


@pytest.fixture
def standin() -> Iterator[StandIn]:
    with serving(StandIn()) as state:
        yield state


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, standin: StandIn) -> GitHub | GitLab:
    """A pull request, by either API."""
    if request.param == "github":
        return GitHub(Rest(standin.root, {"Authorization": "Bearer t"}, pause=lambda seconds: None), "team/tool", 7)
    standin.me, standin.may_ask_user = "42", True
    return GitLab(Rest(standin.root, {"PRIVATE-TOKEN": "t"}, pause=lambda seconds: None), "team/tool", 7)
