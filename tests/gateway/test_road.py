"""The whole road, with a real LiteLLM: what a client sends, what it gets, and what is metered of it."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.gateway.api import GatewayRefused
from pytest_wfbench.gateway.asking import UnixHTTPConnection
from pytest_wfbench.gateway.supervisor import RunningGateway
from pytest_wfbench.usage.cell import cell_usage

from .conftest import USER, OpenSession, Session

pytestmark = pytest.mark.slow

BASH = {"type": "object", "properties": {"command": {"type": "string"}}}
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/messages": {
        "max_tokens": 100,
        "messages": [USER],
        "tools": [{"name": "bash", "input_schema": BASH}],
    },
    "/v1/responses": {"input": "hello", "tools": [{"type": "function", "name": "bash", "parameters": BASH}]},
    "/v1/chat/completions": {
        "messages": [USER],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": BASH}}],
    },
}
NATIVE = {
    "anthropic-messages": {
        "input_tokens": 2000,
        "cache_read_input_tokens": 7000,
        "cache_creation_input_tokens": 1000,
        "output_tokens": 50,
    },
    "openai-responses": {
        "input_tokens": 10000,
        "input_tokens_details": {"cached_tokens": 7000, "cache_write_tokens": 1000},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 10050,
    },
    "openai-chat": {
        "prompt_tokens": 10000,
        "completion_tokens": 50,
        "total_tokens": 10050,
        "prompt_tokens_details": {"cached_tokens": 7000, "cache_write_tokens": 1000},
        "completion_tokens_details": {"reasoning_tokens": 20},
    },
}
UPSTREAM = {
    ("claude", "/v1/messages"): "anthropic-messages",
    ("claude", "/v1/responses"): "anthropic-messages",
    ("claude", "/v1/chat/completions"): "anthropic-messages",
    ("gpt", "/v1/messages"): "openai-chat",
    ("gpt", "/v1/responses"): "openai-responses",
    ("gpt", "/v1/chat/completions"): "openai-chat",
}


def only(session: Session) -> Event:
    (event,) = session.close().events
    return event


class TestMeter:
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize(("task", "path"), UPSTREAM)
    def test_usage_is_the_providers_own(self, open_session: OpenSession, task: str, path: str, stream: bool) -> None:
        """Whatever the client speaks, the event holds the provider's object verbatim, not the translated one."""
        session = open_session(task)
        status, _, answer = session.post(path, stream=stream, **REQUESTS[path])
        event = only(session)
        wire = UPSTREAM[task, path]
        assert status == 200, answer
        assert (event.status, event.wire, event.native_usage) == ("success", wire, NATIVE[wire])
        assert event.answered_model == {"claude": "claude-scripted", "gpt": "gpt-scripted"}[task]
        assert event.requested_model == "replay/demo"
        assert event.response_id is not None
        assert event.ttft_ms is not None
        assert b"I will look." in answer.replace(b'"}', b"")
        assert answer.count(b"bash") >= 2

    @pytest.mark.parametrize("path", REQUESTS)
    def test_the_turn_follows_the_history(self, open_session: OpenSession, path: str) -> None:
        """A turn with text and parallel tool calls counts once, so the second request gets the second turn."""
        session = open_session("claude")
        _, _, first = session.post(path, **REQUESTS[path])
        request = REQUESTS[path] | continued(path, json.loads(first))
        status, _, second = session.post(path, **request)
        assert status == 200, second
        assert b"Done." in second
        assert [event.native_usage["output_tokens"] for event in session.close().events if event.native_usage] == [
            50,
            3,
        ]

    def test_eight_cells_at_once(self, open_session: OpenSession) -> None:
        """The sum of a cell's events is its script's numbers exactly, however many cells run."""
        sessions = [open_session("claude" if n % 2 else "gpt", cell=f"cell-{n}") for n in range(8)]

        def work(session: Session) -> None:
            for number in range(6):
                path = list(REQUESTS)[number % 3]
                assert session.post(path, stream=number % 2 == 0, **REQUESTS[path])[0] == 200

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, sessions))
        for number, session in enumerate(sessions):
            used = session.close()
            total = cell_usage(used.events, used.open_calls)
            assert {event.cell_id for event in used.events} == {f"cell-{number}"}
            assert (total.usage.ordinary_input, total.usage.cache_read_input) == (6 * 2000, 6 * 7000)
            assert (total.usage.cache_write_input, total.usage.output) == (6 * 1000, 6 * 50)
            assert (total.incomplete, total.requests, total.turns) == (False, 6, 6)

    def test_events_are_on_disk(self, open_session: OpenSession, usage_path: Path) -> None:
        """Each event is one line of usage.jsonl when its session is closed."""
        session = open_session("claude", cell="on-disk")
        session.chat()
        event = only(session)
        lines = [Event.model_validate_json(line) for line in usage_path.read_text().splitlines()]
        assert [line for line in lines if line.cell_id == "on-disk"] == [event]

    def test_self_test(self, gateway: RunningGateway, usage_path: Path) -> None:
        """The self-test's event arrives whole, LiteLLM's callback reports it, and it is no part of the sweep."""
        event = gateway.self_test()
        assert event.native_usage is not None
        assert event.call_id not in (usage_path.read_text() if usage_path.exists() else "")


def continued(path: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the next request's history, after tools have run, as a client of each API writes it."""
    if path == "/v1/messages":
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        said = {"role": "assistant", "content": answer["content"]}
        return {"messages": [USER, said, {"role": "user", "content": results}]}
    if path == "/v1/responses":
        said = [item for item in answer["output"] if item["type"] == "message"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        pairs = [
            entry
            for call in calls
            for entry in (
                {key: call[key] for key in ("type", "call_id", "name", "arguments")},
                {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"},
            )
        ]
        texts = [{"role": "assistant", "content": item["content"][0]["text"]} for item in said]
        return {"input": [USER, *texts, *pairs]}
    message = answer["choices"][0]["message"]
    outcomes = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in message["tool_calls"]]
    return {"messages": [USER, {k: message[k] for k in ("role", "content", "tool_calls")}, *outcomes]}


class TestFaults:
    def test_a_scripted_error_passes_and_is_counted(self, open_session: OpenSession) -> None:
        """One client attempt is one upstream attempt; an error happens its number of times, then the turn answers."""
        session = open_session("retry")
        answers = [session.chat() for _ in range(3)]
        events = session.close().events
        assert [status for status, _, _ in answers] == [429, 429, 200]
        assert [event.status for event in events] == ["failure", "failure", "success"]
        assert (events[0].http_status, events[0].error_message) == (429, "slow down")
        total = cell_usage(events)
        assert (total.incomplete, total.usage.total_input, total.failed_requests) == (False, 5, 2)

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_a_cut_answer(self, open_session: OpenSession, stream: bool) -> None:
        """A stream that breaks off is `cut`, its output unknown, and the client does not take it for whole."""
        session = open_session("cut")
        connected, got = 200, b""
        with suppress(OSError, HTTPException):
            connected, _, got = session.post("/v1/messages", stream=stream, **REQUESTS["/v1/messages"])
        event = only(session)
        assert event.status == "cut"
        assert connected >= 400 or b"message_stop" not in got
        assert "output_tokens" not in (event.native_usage or {})
        assert cell_usage([event]).incomplete

    def test_an_exhausted_cassette(self, open_session: OpenSession) -> None:
        """A conversation longer than its script is an error that names the file, never a loop."""
        session = open_session("retry")
        status, _, answer = session.chat({"role": "assistant", "content": "one"}, USER)
        assert status == 400
        assert b"retry.yaml" in answer
        assert only(session).status == "failure"

    def test_a_hung_provider(self, open_session: OpenSession) -> None:
        """A call that does not end within the drain is open, the provider was waited for, and the cell is unknown."""
        session = open_session("hang")
        with ThreadPoolExecutor(2) as pool:
            pending = pool.submit(_until_dropped, session)
            kept = UnixHTTPConnection(session.door.socket, 30)
            kept.connect()
            time.sleep(0.5)
            started = time.monotonic()
            closing = pool.submit(session.close)
            time.sleep(0.5)
            # On a connection from before, new calls are refused while the old one drains.
            kept.request("GET", "/v1/models", headers={"x-api-key": session.door.key})
            assert kept.getresponse().status == 403
            kept.close()
            used = closing.result()
            assert time.monotonic() - started < 13
            pending.result()
        assert (used.open_calls, used.waiting, used.events) == (1, True, ())
        assert cell_usage(used.events, used.open_calls).incomplete

    def test_a_client_that_leaves_is_metered(self, open_session: OpenSession) -> None:
        """Tokens are counted even when the client has gone before the answer came."""
        session = open_session("late")
        body = json.dumps({"model": "replay/demo", "stream": True, "messages": [USER]})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {session.door.key}\r\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(session.door.socket))
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            time.sleep(0.3)
        event = only(session)
        assert event.status in ("success", "cancelled")
        assert cell_usage([event]).usage.output == 9

    def test_a_failure_in_the_proxy_is_recorded(self, open_session: OpenSession) -> None:
        """A request that LiteLLM itself rejects leaves an event, so that the row can say why."""
        session = open_session("claude")
        status, _, _ = session.send("POST", "/v1/chat/completions", {"model": "replay/demo", "messages": "no list"})
        event = only(session)
        assert status >= 400
        assert (event.status, event.wire) == ("failure", "litellm")
        assert not cell_usage([event]).incomplete


def _until_dropped(session: Session) -> None:
    with suppress(OSError, HTTPException):
        session.chat()


class TestSides:
    def test_side_conversations(self, open_session: OpenSession) -> None:
        """Titles and subagents have their own turns; a title is no turn of the session."""
        session = open_session("sides")
        tools = [{"type": "function", "function": {"name": "Task", "parameters": {"type": "object"}}}]
        session.chat(tools=tools)
        _, _, scout = session.post(
            "/v1/chat/completions", messages=[{"role": "user", "content": "Find the ledger."}], tools=tools
        )
        _, _, title = session.post(
            "/v1/chat/completions", messages=[{"role": "system", "content": "Write a short title."}, USER]
        )
        events = session.close().events
        total = cell_usage(events)
        assert b"Found it." in scout
        assert b"A short title" in title
        assert [event.conversation for event in events] == ["main", "subagent", "title"]
        assert (total.turns, total.requests, total.usage.total_input) == (2, 3, 60)
        assert total.subagent_share == pytest.approx(22 / 66)


class TestDoor:
    def test_a_key_is_valid_on_its_own_door_alone(self, open_session: OpenSession) -> None:
        """The key of another session, or none, is refused, and nothing reaches the provider."""
        mine, other = open_session("claude", cell="a"), open_session("claude", cell="b")
        body = {"model": "replay/demo", "messages": [USER]}
        assert mine.send("POST", "/v1/chat/completions", body, key=other.door.key)[0] == 403
        assert mine.send("POST", "/v1/chat/completions", body, key="sk-none")[0] == 403
        assert mine.send("POST", "/v1/chat/completions", body, headers={"x-api-key": mine.door.key})[0] == 200
        used = mine.close()
        assert (used.refused, len(used.events)) == (2, 1)

    def test_a_key_expires(self, open_session: OpenSession) -> None:
        """A key outlives its session's time by at most two seconds."""
        session = open_session("claude", seconds=0)
        time.sleep(1.2)
        assert session.chat()[0] == 403

    def test_nothing_passes_after_close(self, open_session: OpenSession) -> None:
        """A closed door has no socket, and a connection kept open from before does not pass either."""
        session = open_session("claude")
        kept = socket.socket(socket.AF_UNIX)
        kept.connect(str(session.door.socket))
        session.close()
        assert not session.door.socket.exists()
        with pytest.raises(FileNotFoundError):
            session.chat()
        kept.settimeout(5)
        try:
            kept.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert kept.recv(100) == b""
        except OSError:
            pass
        finally:
            kept.close()

    def test_only_the_sessions_models(self, open_session: OpenSession) -> None:
        """A model outside the session's list is refused by the door."""
        session = open_session("claude")
        for model in ("anthropic/claude-scripted", "openai/gpt-4o", "replay/demo2", None, ["replay/demo"]):
            assert session.send("POST", "/v1/messages", {"model": model, "messages": [USER]})[0] == 403
        assert session.close().events == ()

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/"),
            ("GET", "/health/readiness"),
            ("POST", "/key/generate"),
            ("POST", "/v1/embeddings"),
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/"),
            ("POST", "//v1/messages"),
            ("POST", "/v1/%6dessages"),
            ("POST", "/v1/models"),
            ("GET", "/wfbench/callback"),
        ],
    )
    def test_everything_else_is_refused(self, open_session: OpenSession, method: str, path: str) -> None:
        """Only the listed routes pass; LiteLLM's own pages do not."""
        assert open_session("claude").send(method, path, {"model": "replay/demo", "messages": [USER]})[0] == 403

    def test_what_the_door_answers_itself(self, open_session: OpenSession) -> None:
        """HEAD / says that somebody is there, GET /v1/models lists the session's models; query strings are ignored."""
        session = open_session("claude")
        assert session.send("HEAD", "/")[0] == 200
        status, _, body = session.send("GET", "/v1/models?limit=1000")
        assert (status, [entry["id"] for entry in json.loads(body)["data"]]) == (200, ["replay/demo"])
        assert session.post("/v1/messages?beta=true", **REQUESTS["/v1/messages"])[0] == 200

    def test_token_counts_stand_outside(self, open_session: OpenSession) -> None:
        """A token count is answered without LiteLLM, as an event that is no request."""
        session = open_session("claude")
        status, _, body = session.post("/v1/messages/count_tokens", messages=[USER])
        used = session.close()
        assert (status, json.loads(body)["input_tokens"] > 0) == (200, True)
        assert [event.kind for event in used.events] == ["count"]
        assert cell_usage(used.events).requests == 0

    def test_dropped_keys_are_counted(self, open_session: OpenSession) -> None:
        """Body keys that would steer the proxy are dropped and counted, and the request still answers."""
        session = open_session("claude")
        status, _, answer = session.chat(
            mock_response="forged",
            fallbacks=["openai/gpt-4o"],
            num_retries=5,
            api_base="http://evil",
            metadata={"a": 1},
        )
        used = session.close()
        assert status == 200
        assert b"forged" not in answer
        assert used.dropped_keys == dict.fromkeys(
            ("mock_response", "fallbacks", "num_retries", "api_base", "metadata"), 1
        )

    def test_provider_side_tools(self, open_session: OpenSession) -> None:
        """A provider-side tool is refused with a 400 that says how to allow it, and passes where it is allowed."""
        tools = [{"type": "web_search_20250305", "name": "web_search"}]
        request = {**REQUESTS["/v1/messages"], "tools": tools}
        session = open_session("claude")
        status, _, answer = session.post("/v1/messages", **request)
        assert status == 400
        assert b"provider_tools: [web_search]" in answer
        allowed = open_session("claude", provider_tools=("web_search",))
        assert allowed.post("/v1/messages", **request)[0] == 200

    def test_claims_are_recorded(self, open_session: OpenSession) -> None:
        """What a client says of itself is kept as a claim."""
        session = open_session("claude")
        headers = {"x-claude-code-session-id": "s-1", "x-claude-code-agent-id": "a-1"}
        body = {"model": "replay/demo", **REQUESTS["/v1/messages"]}
        session.send("POST", "/v1/messages", body, headers=headers)
        event = only(session)
        assert (event.claims.session_id, event.claims.agent_id) == ("s-1", "a-1")
        assert event.conversation == "subagent"

    def test_a_session_no_cassette_fits(self, open_session: OpenSession) -> None:
        """Opening a door for which there is no script is refused, naming the labels."""
        with pytest.raises(GatewayRefused, match="no cassette fits task=unscripted"):
            open_session("unscripted")

    def test_a_body_without_bound_is_refused(self, open_session: OpenSession) -> None:
        """A body over 64 MiB is answered 413."""
        session = open_session("claude")
        try:
            status, _, _ = session.chat({"role": "user", "content": "x" * (65 << 20)})
        except OSError:
            status = 413  # The door hung up while the client was still sending.
        assert status == 413
        assert session.close().events == ()
