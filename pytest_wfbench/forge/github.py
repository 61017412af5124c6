"""GitHub's REST API: the comments of a pull request, which are those of the issue of its number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_wfbench.forge.api import Comment, ForgeError
from pytest_wfbench.forge.http import Rest

ACTIONS = "github-actions[bot]"
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


@dataclass(frozen=True)
class GitHub:
    """One pull request; ``repository`` is ``owner/name``."""

    rest: Rest
    repository: str
    number: int

    def me(self) -> str:
        """Return the token's login; the token of a workflow may not ask, and is the Actions bot's."""
        try:
            return str(self.rest.call("GET", "/user")["login"])
        except ForgeError:
            return ACTIONS

    def comments(self) -> Iterator[Comment]:
        """Yield every comment, oldest first."""
        path = f"/repos/{self.repository}/issues/{self.number}/comments?per_page=100"
        return map(_comment, self.rest.pages(path))

    def create(self, body: str) -> Comment:
        """Add a comment."""
        path = f"/repos/{self.repository}/issues/{self.number}/comments"
        return _comment(self.rest.call("POST", path, {"body": body}))

    def update(self, comment: Comment, body: str) -> Comment:
        """Replace a comment's text."""
        path = f"/repos/{self.repository}/issues/comments/{comment.id}"
        return _comment(self.rest.call("PATCH", path, {"body": body}))

    def delete(self, comment: Comment) -> None:
        """Remove a comment."""
        self.rest.call("DELETE", f"/repos/{self.repository}/issues/comments/{comment.id}")


def _comment(entry: Any) -> Comment:
    author = (entry.get("user") or {}).get("login") or ""
    return Comment(int(entry["id"]), str(author), str(entry.get("body") or ""))
