"""A server that behaves like the REST APIs of GitHub and GitLab, as far as comments go."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.serving import Request, Response, serve

PATHS = (
    re.compile(r"/repos/(?P<place>[^/]+/[^/]+)/issues/(?P<pr>\d+)/comments"),
    re.compile(r"/repos/(?P<place>[^/]+/[^/]+)/issues/comments/(?P<id>\d+)"),
    re.compile(r"/projects/(?P<place>[^/]+)/merge_requests/(?P<pr>\d+)/notes(/(?P<id>\d+))?"),
)


@dataclass
class StandIn:
    """The state: comments in the order they were made. Switches make it misbehave.

    ``before`` is called with (method, path) ahead of every answer. ``refuse`` gives the status of a write, ``limit``
    the longest body taken, ``stumbles`` how many requests are answered 503 first.
    """

    me: str = "github-actions[bot]"
    comments: list[dict[str, Any]] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    before: Callable[[str, str], None] = lambda method, path: None
    refuse: int | None = None
    limit: int = 65_536
    stumbles: int = 0
    page: int = 30
    may_ask_user: bool = False
    number: int = 0
    root: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def add(self, body: str, author: str | None = None) -> dict[str, Any]:
        with self.lock:
            self.number += 1
            login = author or self.me
            entry = {"id": self.number, "body": body, "user": {"login": login}, "author": {"id": login}}
            self.comments.append(entry)
            return entry

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any, dict[str, str]]:
        self.before(method, path)
        with self.lock:
            if self.stumbles:
                self.stumbles -= 1
                return 503, {"message": "stumbled"}, {"Retry-After": "0"}
            if path == "/user":
                found = {"login": self.me, "id": self.me}
                return (200, found, {}) if self.may_ask_user else (403, {"message": "not accessible"}, {})
            match = next((m for pattern in PATHS if (m := pattern.fullmatch(path))), None)
            if match is None:
                return 404, {"message": "Not Found"}, {}
            if method == "GET":
                return self._listed(path, query)
            return self._written(method, match.groupdict().get("id"), body)

    def _listed(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any, dict[str, str]]:
        number = int(query.get("page", ["1"])[0])
        part = self.comments[(number - 1) * self.page : number * self.page]
        more = number * self.page < len(self.comments)
        link = {"Link": f'<{self.root}{path}?page={number + 1}>; rel="next"'} if more else {}
        return 200, part, link

    def _written(self, method: str, wanted: str | None, body: Any) -> tuple[int, Any, dict[str, str]]:
        if self.refuse is not None:
            return self.refuse, {"message": "Resource not accessible by integration"}, {}
        if body is not None and len(body["body"]) > self.limit:
            return 422, {"message": "Validation Failed", "errors": ["body is too long"]}, {}
        entry = next((e for e in self.comments if str(e["id"]) == wanted), None)
        if wanted is not None and entry is None:
            return 404, {"message": "Not Found"}, {}
        self.writes.append((method, wanted or "new"))
        if entry is None:
            return 201, self.add(body["body"]), {}
        if method == "DELETE":
            self.comments.remove(entry)
            return 204, None, {}
        entry["body"] = body["body"]
        return 200, entry, {}


@contextmanager
def serving(state: StandIn) -> Iterator[StandIn]:
    """Serve on a free port of this machine."""

    def answer(request: Request) -> Response:
        state.tokens.add(request.headers.get("authorization") or request.headers.get("private-token") or "")
        body = json.loads(request.body) if request.body else None
        url = urlsplit(request.path)
        status, told, headers = state.answer(request.method, url.path, parse_qs(url.query), body)
        return Response(b"" if told is None else json.dumps(told).encode(), status=status, headers=headers)

    with serve(answer) as state.root:
        yield state


def main() -> None:
    """Serve until ended, and print the address."""
    with serving(StandIn()) as state:
        print(state.root, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
