"""The CI run of a sweep."""

from __future__ import annotations

import pytest

from pytest_wfbench.evidence.ci import Ci, branch_of, ci_of

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKFLOW": "Smoke",
    "GITHUB_RUN_NUMBER": "12",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_RUN_ID": "99",
}


def test_nowhere() -> None:
    """Outside of CI there is no run."""
    assert ci_of({"GITHUB_RUN_NUMBER": "12"}) is None


def test_github() -> None:
    """A later attempt orders after an earlier one, and the next run after both."""
    assert ci_of(GITHUB) == Ci(workflow="Smoke", order=12002, url="https://github.com/o/r/actions/runs/99")


def test_gitlab() -> None:
    """A GitLab job is ordered by its pipeline."""
    found = ci_of({"GITLAB_CI": "true", "CI_JOB_NAME": "smoke", "CI_PIPELINE_IID": "7", "CI_JOB_URL": "https://g/j/1"})
    assert found == Ci(workflow="smoke", order=7001, url="https://g/j/1")


def test_a_number_that_is_none() -> None:
    """A run number that does not read is unknown, not 0."""
    found = ci_of(GITHUB | {"GITHUB_RUN_NUMBER": "x"})
    assert found
    assert found.order is None


ON_GITHUB, ON_GITLAB = {"GITHUB_ACTIONS": "true"}, {"GITLAB_CI": "true"}


@pytest.mark.parametrize(
    ("environ", "branch"),
    [
        ({**ON_GITHUB, "GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "7/merge", "GITHUB_REF_TYPE": "branch"}, "topic"),
        ({**ON_GITHUB, "GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "branch"}, "main"),
        ({**ON_GITHUB, "GITHUB_REF_NAME": "v1", "GITHUB_REF_TYPE": "tag"}, None),
        ({**ON_GITLAB, "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic"}, "topic"),
        ({**ON_GITLAB, "CI_COMMIT_BRANCH": "main"}, "main"),
        ({**ON_GITLAB, "CI_COMMIT_TAG": "v1"}, None),
        ({"GITHUB_HEAD_REF": "topic"}, None),
    ],
)
def test_branch(environ: dict[str, str], branch: str | None) -> None:
    """The branch that is tested is that of the pull request, else the one that was pushed; a tag is none."""
    assert branch_of(environ) == branch
