"""Keys at a door, over a real LiteLLM: whose opens it, for which model, and that LiteLLM has and tells none."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.gateway.supervisor import RunningGateway
from tests.attack.doors import CHAT, COUNT, MESSAGES, PLAIN, RESPONSES, ask, exchange, head, statuses
from tests.gateway.conftest import LIVE, MODEL, UPSTREAM_KEY, OpenSession, Provider, Session

pytestmark = pytest.mark.slow


class TestModels:
    @pytest.mark.parametrize("path", [MESSAGES, COUNT, RESPONSES, CHAT])
    def test_no_other_model(self, live: Session, provider: Provider, path: str) -> None:
        """No alias, prefix, wildcard, case or list is the subject's model, on any route."""
        before = len(provider.seen)
        names: list[Any] = [
            "gpt-live",
            "openai/openai/gpt-live",
            "openai/gpt-Live",
            "OPENAI/gpt-live",
            "openai/*",
            "*",
            "",
            " " + LIVE,
            LIVE + " ",
            LIVE + "\n",
            LIVE + "\0",
            "anthropic/gpt-live",
            "wfbench/self-test",
            MODEL,
            "openai/gpt-live-mini",
            "openai/responses/gpt-live",
            "openai/chat/gpt-live",
            [LIVE],
            {"a": LIVE},
            None,
            0,
            True,
            f"{LIVE},openai/gpt-4o",
            "litellm_proxy/gpt-live",
            "openai/../x",
        ]
        for name in names:
            status, answer = ask(live, path, model=name)
            assert status == 403, (name, answer)
        assert len(provider.seen) == before
        assert live.close().events == ()


class TestKeys:
    def test_no_other_key(self, open_session: OpenSession, provider: Provider, gateway: RunningGateway) -> None:
        """Keys of other sessions, cells and times, near misses, and none at all do not open a door."""
        before = len(provider.seen)
        mine = open_session("live", models=(LIVE,), cell="a", session="work")
        later = open_session("live", models=(LIVE,), cell="a", session="judge")
        other = open_session("live", models=(LIVE,), cell="b", session="work")
        twin = open_session("live", models=(LIVE,), cell="a", session="work")
        dead = open_session("live", models=(LIVE,), cell="a", session="work")
        dead.close()
        key = mine.door.key
        wrong = [
            later.door.key,
            other.door.key,
            twin.door.key,
            dead.door.key,
            key[:-1],
            key + "0",
            key.upper(),
            f"x{key}",
            key.replace("sk-wf-", "sk-wf-f"),
            "",
            "Bearer",
            "é",
            UPSTREAM_KEY,
            "sk-1234",
            f"{key},{key}",
            "null",
        ]
        for one in wrong:
            for name in ("authorization", "x-api-key", "api-key", "x-litellm-api-key", "cookie", "proxy-authorization"):
                value = f"Bearer {one}" if name == "authorization" else one
                body = json.dumps({"model": LIVE, **PLAIN[CHAT]}).encode()
                length = f"content-length: {len(body)}"
                sent = head(mine, f"POST {CHAT}?key={key} HTTP/1.1", f"{name}: {value}", length, key=False) + body
                assert statuses(exchange(mine, sent))[0] in (400, 403), (one, name)
        assert len(provider.seen) == before
        assert mine.close().events == ()

    def test_an_expired_key(self, open_session: OpenSession, provider: Provider) -> None:
        """A key does not outlive its session's time, nor can the time in it be changed."""
        session = open_session("live", models=(LIVE,), seconds=0)
        time.sleep(1.2)
        expiry, signature = session.door.key.removeprefix("sk-wf-").split("-")
        later = f"sk-wf-{int(expiry, 16) + 9999:x}-{signature}"
        body = {"model": LIVE, **PLAIN[CHAT]}
        assert [session.send("POST", CHAT, body, key=key)[0] for key in (session.door.key, later)] == [403, 403]

    def test_doors_are_private(self, gateway: RunningGateway, live: Session) -> None:
        """Only a sandbox's user can open a door, nobody can list the doors, and what else listens is ours alone."""
        door = live.door.socket
        assert door.stat().st_mode & 0o777 == 0o600
        assert door.parent.stat().st_mode & 0o044 == 0
        private = door.parents[1] / "p"
        assert private.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in private.iterdir()} >= {"control", "tap", "proxy"}


class TestProxy:
    def test_it_knows_nothing_of_the_host(self, gateway: RunningGateway) -> None:
        """LiteLLM starts with no variable of the caller's, in a private directory, and holds no provider's key."""
        pid = gateway.status().pid
        assert pid is not None
        process = Path(f"/proc/{pid}")
        try:
            names = {
                entry.partition("=")[0] for entry in (process / "environ").read_bytes().decode().split("\0") if entry
            }
            place = (process / "cwd").resolve()
            files = [str(path.readlink()) for path in (process / "fd").iterdir()]
        except PermissionError:
            pytest.skip("only root can look into a process that closed itself")
        assert names <= {
            "PATH",
            "LANG",
            "LC_ALL",
            "LD_LIBRARY_PATH",
            "HOME",
            "PYTHONPATH",
            "PYTHONSAFEPATH",
            "LC_CTYPE",
        }
        assert place.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in place.iterdir()} <= {
            "config.yaml",
            "wfbench_hooks.py",
            "proxy.log",
            "proxy",
            "tap",
            "control",
            "__pycache__",
            ".cache",
            ".config",
            ".litellm_cache",
        }
        for path in place.rglob("*"):
            if path.is_file():
                text = path.read_text(errors="replace")
                assert UPSTREAM_KEY not in text
                assert "sk-" not in text.replace("sk-wf-", "") or path.suffix in (".py", ".pyc"), text
        assert not [name for name in files if name.startswith("/") and not name.startswith(("/dev/", str(place)))]

    @pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT])
    def test_its_errors_tell_nothing(self, live: Session, path: str) -> None:
        """An error that LiteLLM words holds no key of ours and no path of the host."""
        odd: list[dict[str, Any]] = [
            {"messages": "no list", "input": 5},
            {"messages": [{"role": 5}], "input": [{"role": 5}]},
            {"tools": [{"name": "f", "input_schema": 5}]},
            {"temperature": {"a": 1}},
            {"messages": [[]], "input": [[]]},
            {"max_tokens": "x", "max_output_tokens": "x"},
            {"messages": [{"role": "user", "content": "fail"}], "input": "fail"},
        ]
        for body in odd:
            _, answer = ask(live, path, **body)
            text = answer.decode()
            assert not re.search(r"sk-[0-9a-f]{16}", text), text
            assert UPSTREAM_KEY not in text
            assert "/p/" not in text
            assert "Traceback" not in text, text
        assert not any("sk-" in (event.error_message or "") for event in live.close().events)
