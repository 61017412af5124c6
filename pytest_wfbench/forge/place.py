"""Which pull request a CI job belongs to, as its environment tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.forge.api import Forge
from pytest_wfbench.forge.github import HEADERS, GitHub
from pytest_wfbench.forge.gitlab import GitLab
from pytest_wfbench.forge.http import Rest

EVENT_LIMIT = 32 << 20
GITHUB_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
GITLAB_TOKEN = "GITLAB_TOKEN"


class Nowhere(Exception):
    """There is nothing to post to, or no token to do it with: no fault of the sweep. The message says what lacks."""


class BadPlace(ValueError):
    """What names the pull request does not read; the message names the remedy."""


def forge_of(environ: Mapping[str, str], repository: str | None = None, number: int | None = None) -> Forge:
    """Return the pull request of this job: GitLab's where its variables are set, else GitHub's.

    ``repository`` and ``number`` take the place of what the environment says.

    Raises:
        Nowhere: when there is no pull request or no token.
        BadPlace: when a name is not one.
    """
    if environ.get("GITLAB_CI") == "true":
        return _gitlab(environ, repository, number)
    return _github(environ, repository, number)


def _github(environ: Mapping[str, str], repository: str | None, number: int | None) -> Forge:
    named = repository or environ.get("GITHUB_REPOSITORY", "")
    if not named:
        raise Nowhere("no repository: set GITHUB_REPOSITORY or give --repo owner/name")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}", named) or ".." in named:
        raise BadPlace(f"{named!r} is no repository: write owner/name")
    found = number or _pull_request(environ)
    if found is None:
        raise Nowhere("no pull request: this job does not run for one, and no --pr was given")
    token = next((environ[name] for name in GITHUB_TOKENS if environ.get(name)), None)
    if token is None:
        raise Nowhere(f"no token: set {' or '.join(GITHUB_TOKENS)}")
    root = environ.get("GITHUB_API_URL", "").rstrip("/") or "https://api.github.com"
    return GitHub(Rest(_checked(root), {**HEADERS, "Authorization": f"Bearer {token}"}), named, found)


def _gitlab(environ: Mapping[str, str], repository: str | None, number: int | None) -> Forge:
    project = repository or environ.get("CI_PROJECT_ID", "")
    iid = number or _whole(environ.get("CI_MERGE_REQUEST_IID"))
    if not project or iid is None:
        raise Nowhere("no merge request: this job does not run for one, and no --pr was given")
    token = environ.get(GITLAB_TOKEN)
    if not token:
        raise Nowhere(f"no token: set {GITLAB_TOKEN} (the job's own token may not write notes)")
    root = environ.get("CI_API_V4_URL", "").rstrip("/") or "https://gitlab.com/api/v4"
    return GitLab(Rest(_checked(root), {"PRIVATE-TOKEN": token}), project, iid)


def _checked(root: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@]+(/[^\s@]*)?", root):
        raise BadPlace(f"{root!r} is no API's address: write https://host/path without a name or password in it")
    return root


def _pull_request(environ: Mapping[str, str]) -> int | None:
    """The number in the ref, else in the event that started the job."""
    if found := re.fullmatch(r"refs/pull/([0-9]{1,9})/(merge|head)", environ.get("GITHUB_REF", "")):
        return int(found[1])
    named = environ.get("GITHUB_EVENT_PATH")
    if not named:
        return None
    try:
        event: Any = json.loads(read_untrusted(Path(named).parent, Path(named).name, EVENT_LIMIT))
    except (OSError, UnsafeFile, ValueError):
        return None
    for name in ("pull_request", "issue"):
        found_number = event.get(name, {}).get("number") if isinstance(event, dict) else None
        if isinstance(found_number, int):
            return found_number
    return None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
