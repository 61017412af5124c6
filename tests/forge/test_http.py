"""What stands between a request and its answer."""

from __future__ import annotations

import pytest

from pytest_wfbench.forge.api import ForgeError
from pytest_wfbench.forge.github import GitHub
from pytest_wfbench.forge.http import Rest
from tests.forge.standin import StandIn


def rest(root: str) -> Rest:
    return Rest(root, {"Authorization": "Bearer secret-token-0123"}, pause=lambda seconds: None)


class TestRest:
    def test_nobody_there(self) -> None:
        """An address where nobody listens is named, the token is not."""
        with pytest.raises(ForgeError, match=r"127\.0\.0\.1:9/user does not answer") as caught:
            rest("http://127.0.0.1:9").call("GET", "/user")
        assert "secret-token" not in str(caught.value)
        assert "secret-token" not in repr(rest("http://127.0.0.1:9"))

    def test_another_host(self, standin: StandIn) -> None:
        """A next page on another host is not followed: the token would go there."""
        for _ in range(40):
            standin.add("x")
        real = standin.root
        standin.root = "http://127.0.0.2:1"
        with pytest.raises(ForgeError, match="another host"):
            list(GitHub(rest(real), "team/tool", 7).comments())

    def test_no_such_place(self, standin: StandIn) -> None:
        """A repository that is not there is an error that says what to check."""
        with pytest.raises(ForgeError, match="no such repository or pull request"):
            list(rest(standin.root).pages("/repos/team/tool/nothing"))

    def test_no_api(self, standin: StandIn) -> None:
        """An answer that is no list is no API."""
        standin.may_ask_user = True
        with pytest.raises(ForgeError, match="answered no list"):
            list(rest(standin.root).pages("/user"))
