"""GitLab's REST API: the notes of a merge request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pytest_wfbench.forge.api import Comment
from pytest_wfbench.forge.http import Rest


@dataclass(frozen=True)
class GitLab:
    """One merge request; ``project`` is its number or path."""

    rest: Rest
    project: str
    number: int

    @property
    def _notes(self) -> str:
        return f"/projects/{quote(self.project, safe='')}/merge_requests/{self.number}/notes"

    def me(self) -> str:
        """Return the token's user."""
        return str(self.rest.call("GET", "/user")["id"])

    def comments(self) -> Iterator[Comment]:
        """Yield every note, oldest first."""
        return map(_comment, self.rest.pages(f"{self._notes}?per_page=100&sort=asc&order_by=created_at"))

    def create(self, body: str) -> Comment:
        """Add a note."""
        return _comment(self.rest.call("POST", self._notes, {"body": body}))

    def update(self, comment: Comment, body: str) -> Comment:
        """Replace a note's text."""
        return _comment(self.rest.call("PUT", f"{self._notes}/{comment.id}", {"body": body}))

    def delete(self, comment: Comment) -> None:
        """Remove a note."""
        self.rest.call("DELETE", f"{self._notes}/{comment.id}")


def _comment(entry: Any) -> Comment:
    author = (entry.get("author") or {}).get("id")
    return Comment(int(entry["id"]), "" if author is None else str(author), str(entry.get("body") or ""))
