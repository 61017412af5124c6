"""The CI run a sweep belongs to, as the environment tells it."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_wfbench.evidence.row import Block


class Ci(Block):
    """A CI run. ``order`` grows with every run and attempt; ``url`` is where its page is."""

    workflow: str | None = None
    order: int | None = None
    url: str | None = None


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _order(run: int | None, attempt: int | None) -> int | None:
    """A thousand attempts fit between two runs."""
    return None if run is None else run * 1000 + min(attempt or 1, 999)


def ci_of(environ: Mapping[str, str]) -> Ci | None:
    """Return the CI run that this environment describes (GitHub Actions, GitLab CI), or none outside of one."""
    if environ.get("GITHUB_ACTIONS") == "true":
        page = "/".join(environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"))
        run = environ.get("GITHUB_RUN_ID")
        return Ci(
            workflow=environ.get("GITHUB_WORKFLOW"),
            order=_order(_count(environ.get("GITHUB_RUN_NUMBER")), _count(environ.get("GITHUB_RUN_ATTEMPT"))),
            url=f"{page}/actions/runs/{run}" if run else None,
        )
    if environ.get("GITLAB_CI") == "true":
        return Ci(
            workflow=environ.get("CI_JOB_NAME"),
            order=_order(_count(environ.get("CI_PIPELINE_IID")), None),
            url=environ.get("CI_JOB_URL"),
        )
    return None


def branch_of(environ: Mapping[str, str]) -> str | None:
    """Return the branch that this CI run is for: of a pull request the one that is to be merged. None outside of one.

    Of the environment of a fork's run this may be any name.
    """
    if environ.get("GITHUB_ACTIONS") == "true":
        named = environ.get("GITHUB_REF_NAME") if environ.get("GITHUB_REF_TYPE") == "branch" else None
        return environ.get("GITHUB_HEAD_REF") or named or None
    if environ.get("GITLAB_CI") == "true":
        return environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or environ.get("CI_COMMIT_BRANCH") or None
    return None
