"""Traces of a results directory: what is in them, and that they arrive."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pytest_wfbench.cli import main
from pytest_wfbench.digests import trace_id
from pytest_wfbench.evidence.event import Event
from pytest_wfbench.report.links import trace_url
from pytest_wfbench.traces import send
from pytest_wfbench.traces.send import BadEndpoint, NotSent, endpoint_of, headers_of, send_traces
from pytest_wfbench.traces.spans import cell_traces

from .receiver import Receiver, plain, receiving

SWEEP = "20261130T120000Z-1a2b3c"
KEY = "sk-ant-api03-AAAABBBBCCCCDDDD1234"
SECOND = 1_000_000_000


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as state:
        yield state


def at(seconds: float) -> str:
    return f"2026-11-30T12:00:{seconds:06.3f}Z"


def event(cell: str, number: int, start: float, end: float, **changes: Any) -> Event:
    base = {
        "sweep_id": SWEEP, "cell_id": cell, "session": "work", "call_id": f"call-{number}", "status": "success",
        "requested_model": "anthropic/claude", "answered_model": "claude-1", "provider": "anthropic",
        "wire": "anthropic-messages", "response_id": f"msg-{number}", "started_at": at(start),
        "completed_at": at(end), "http_status": 200,
        "native_usage": {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70,
                         "output_tokens": 5},
    }  # fmt: skip
    return Event.model_validate(base | changes)


def call(identity: str, name: str = "bash", session: str = "work", **more: Any) -> dict[str, Any]:
    return {"session": session, "type": "tool_call", "id": identity, "name": name, "arguments": {"k": KEY}, **more}


def result(identity: str, error: bool = False, session: str = "work") -> dict[str, Any]:
    return {"session": session, "type": "tool_result", "id": identity, "error": error, "output": "said in secret"}


@pytest.fixture
def results(demo: ModuleType, tmp_path: Path) -> Path:
    """Two cells: one with three calls of a model and three of tools, one that is unusable."""
    rows = [
        demo.row("a", "workflow", answer="the answer itself"),
        demo.row("b", "workflow", outcome="unusable", reason=f"401 bad key {KEY}"),
    ]
    demo.write(tmp_path, rows, demo.sweep(rows))
    good, bad = (row.cell_id for row in rows)
    events = [
        event(good, 1, 1, 2), event(good, 2, 5, 6), event(good, 3, 9, 10),
        event(good, 4, 3, 4, conversation="subagent"), event(good, 5, 11, 12, session="judge"),
        event(good, 6, 0, 0, kind="count"),
        event(bad, 1, 1, 2, status="failure", http_status=401, error_class="auth", error_message=f"bad {KEY}",
              native_usage=None, answered_model=None, provider=None),
    ]  # fmt: skip
    (tmp_path / "usage.jsonl").write_text("".join(f"{entry.model_dump_json()}\n" for entry in events))
    lines = [call("1"), call("2", "read"), result("1"), result("2", True), {"session": "work", "type": "text",
             "text": "said"}, call("3"), result("3")]  # fmt: skip
    place = tmp_path / "cells" / good / "1"
    place.mkdir(parents=True)
    (place / "transcript.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "{torn")
    return tmp_path


def sent(results: Path, receiver: Receiver) -> dict[str, list[Span]]:
    """The spans by their names."""
    send_traces(cell_traces(results), SWEEP, receiver.root, {})
    found: dict[str, list[Span]] = {}
    for span in receiver.spans:
        found.setdefault(span.name, []).append(span)
    return found


class TestSpans:
    def test_one_trace_a_cell(self, results: Path, receiver: Receiver) -> None:
        """Each cell is one trace with one root, by ids that anybody can compute; every parent is there."""
        sent(results, receiver)
        roots = [span for span in receiver.spans if not span.parent_span_id]
        ids = {span.trace_id.hex() for span in receiver.spans}
        cells = {plain(root)["wfbench.cell.id"] for root in roots}
        assert len(roots) == 2
        assert ids == {trace_id(SWEEP, cell) for cell in cells} == {root.trace_id.hex() for root in roots}
        known = {(span.trace_id, span.span_id) for span in receiver.spans}
        assert len(known) == len(receiver.spans)
        assert all((s.trace_id, s.parent_span_id) in known for s in receiver.spans if s.parent_span_id)
        assert all(len(s.trace_id) == 16 and len(s.span_id) == 8 for s in receiver.spans)
        assert trace_url("https://t/{trace_id}", SWEEP, min(cells)) == f"https://t/{trace_id(SWEEP, min(cells))}"

    def test_conventions(self, results: Path, receiver: Receiver) -> None:
        """Sessions, calls and tools have the names and attributes of the conventions, and tokens."""
        spans = sent(results, receiver)
        (agent,) = [s for s in spans["invoke_agent mini"] if plain(s)["wfbench.session"] == "work"][:1]
        assert plain(agent)["gen_ai.operation.name"] == "invoke_agent"
        chats = [s for s in spans["chat anthropic/claude"] if s.parent_span_id == agent.span_id]
        first, cell = plain(chats[0]), plain(spans["cell a workflow"][0])["wfbench.cell.id"]
        assert plain(agent)["gen_ai.conversation.id"] == f"{cell}/work"
        assert chats[0].kind == Span.SPAN_KIND_CLIENT
        assert {name: first[name] for name in first if name.startswith("gen_ai")} == {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "anthropic/claude", "gen_ai.response.model": "claude-1",
            "gen_ai.response.id": "msg-1", "gen_ai.conversation.id": f"{cell}/work", "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 70,
            "gen_ai.usage.cache_creation.input_tokens": 20,
        }  # fmt: skip
        (tool,) = spans["execute_tool read"]
        assert plain(tool) == {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "gen_ai.tool.call.id": "2",
            "gen_ai.tool.type": "function", "error.type": "tool_error", "wfbench.time.derived": True,
        }  # fmt: skip
        assert tool.status.code == Status.STATUS_CODE_ERROR
        assert len(spans["judge"]) == 1
        assert len(chats) == 4

    def test_times(self, results: Path, receiver: Receiver) -> None:
        """A child lies within its session, and a tool call between the answer that asked for it and the next one."""
        spans = sent(results, receiver)
        zero = spans["cell a workflow"][0].start_time_unix_nano
        tools = [span for name in ("execute_tool bash", "execute_tool read") for span in spans[name]]
        assert [(t.start_time_unix_nano - zero, t.end_time_unix_nano - zero) for t in tools] == [
            (2 * SECOND, 5 * SECOND), (6 * SECOND, 9 * SECOND), (2 * SECOND, 5 * SECOND),
        ]  # fmt: skip
        parents = {(span.trace_id, span.span_id): span for span in receiver.spans}
        for span in receiver.spans:
            assert span.start_time_unix_nano <= span.end_time_unix_nano
            if span.parent_span_id:
                parent = parents[span.trace_id, span.parent_span_id]
                assert parent.start_time_unix_nano <= span.start_time_unix_nano
                assert span.end_time_unix_nano <= parent.end_time_unix_nano

    def test_outcomes(self, results: Path, receiver: Receiver) -> None:
        """The root tells the outcome; what is unusable, and a request that failed, is an error."""
        spans = sent(results, receiver)
        good, bad = spans["cell a workflow"][0], spans["cell b workflow"][0]
        assert (good.status.code, bad.status.code) == (Status.STATUS_CODE_OK, Status.STATUS_CODE_ERROR)
        assert plain(bad)["wfbench.outcome.kind"] == "provider-error"
        failed = [s for s in receiver.spans if plain(s).get("error.type") == "auth"]
        assert [s.status.code for s in failed] == [Status.STATUS_CODE_ERROR]

    def test_nothing_that_was_said(self, results: Path, receiver: Receiver) -> None:
        """No secret, prompt, answer, argument or output is sent."""
        sent(results, receiver)
        assert receiver.bodies
        for body in receiver.bodies:
            for word in (KEY, "the answer itself", "said in secret", "arguments"):
                assert word.encode() not in body

    def test_hostile_transcript(self, results: Path, receiver: Receiver) -> None:
        """What an agent makes of its transcript costs nothing but its own tool calls."""
        (place,) = results.glob("cells/*/1/transcript.jsonl")
        odd = [call("x" * 9000, "\ud800" * 900), {"type": "tool_call"}, {"type": 3}, ["a"], "b", call("1", KEY),
               {"type": "tool_call", "id": {}, "name": [], "session": 4}]  # fmt: skip
        place.write_text("\n".join(json.dumps(line) for line in odd) + "\n\0\xff\n" + "[" * 100_000)
        sent(results, receiver)
        assert max(len(span.name) for span in receiver.spans) < 250
        assert all(KEY.encode() not in body for body in receiver.bodies)
        place.unlink()
        place.symlink_to("/etc/passwd")
        sent(results, receiver)

    def test_without_times(self, demo: ModuleType, tmp_path: Path, receiver: Receiver) -> None:
        """A row whose times are unknown or go backwards makes a span that ends no earlier than it starts."""
        rows = [demo.row("a", started_at=None, recorded_at=None), demo.row("b", started_at="x"),
                demo.row("c", started_at=at(30), recorded_at=at(10))]  # fmt: skip
        demo.write(tmp_path, rows, demo.sweep(rows))
        sent(tmp_path, receiver)
        assert [s.start_time_unix_nano <= s.end_time_unix_nano for s in receiver.spans] == [True] * 6


class TestSending:
    def test_batches(self, results: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many spans go in several requests, none twice."""
        monkeypatch.setattr(send, "BATCH", 4)
        told = send_traces(cell_traces(results), SWEEP, receiver.root, {})
        assert len(receiver.spans) == told.spans == len({s.span_id for s in receiver.spans})
        assert len(receiver.requests) == -(-told.spans // 4)

    def test_headers(self, results: Path, receiver: Receiver) -> None:
        """The key is taken from the environment, and sent as a header."""
        send_traces(cell_traces(results), SWEEP, receiver.root, {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, y=2"})
        assert (receiver.headers[0]["x-key"], receiver.headers[0]["y"]) == ("a b", "2")

    def test_stumbles(self, results: Path, receiver: Receiver) -> None:
        """A receiver that is busy is asked again; one that refuses is not."""
        receiver.statuses = [503, 200]
        send_traces(cell_traces(results), SWEEP, receiver.root, {})
        assert len(receiver.requests) == 1
        receiver.statuses, receiver.asked = [401], []
        with pytest.raises(NotSent, match="HTTP 401"):
            send_traces(cell_traces(results), SWEEP, receiver.root, {})
        assert len(receiver.asked) == 1

    def test_taken_in_part(self, results: Path, receiver: Receiver) -> None:
        """Spans that the receiver says it refused are told."""
        receiver.refused = 2
        with pytest.raises(NotSent, match=r"took \d+ of \d+ spans"):
            send_traces(cell_traces(results), SWEEP, receiver.root, {})

    def test_in_bounded_time(self, results: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
        """A receiver that never answers is given up."""
        monkeypatch.setattr(send, "DEADLINE", 0.6)
        receiver.stall = 30.0
        begun = time.monotonic()
        with pytest.raises(NotSent, match="did not take the traces"):
            send_traces(cell_traces(results), SWEEP, receiver.root, {})
        assert time.monotonic() - begun < 6

    @pytest.mark.parametrize(
        ("typed", "address"),
        [
            ("http://h:4318", "http://h:4318/v1/traces"),
            ("http://h:4318/", "http://h:4318/v1/traces"),
            ("https://h/otlp/v1/traces", "https://h/otlp/v1/traces"),
        ],
    )
    def test_address(self, typed: str, address: str) -> None:
        """The path is added once."""
        assert endpoint_of(typed) == address

    @pytest.mark.parametrize("typed", ["h:4318", "grpc://h", "http://", "http://u:p@h", "http://h?x=1", "http://h:x",
                                       "http://h:99999", "http://h /", "http://h\n"])  # fmt: skip
    def test_bad_address(self, typed: str) -> None:
        """What is no address is refused, and so is one with a password in it."""
        with pytest.raises(BadEndpoint):
            endpoint_of(typed)

    @pytest.mark.parametrize("typed", ["secretvalue", "a b=secretvalue", "x=a%0d%0asecretvalue", "é=secretvalue"])
    def test_bad_headers(self, typed: str) -> None:
        """Headers that do not read are refused, and not shown."""
        with pytest.raises(BadEndpoint) as caught:
            headers_of({"OTEL_EXPORTER_OTLP_HEADERS": typed})
        assert "secretvalue" not in str(caught.value)


class TestVerb:
    def test_sends(self, results: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
        """The verb sends a directory's traces, and sent again they have the same ids."""
        for _ in range(2):
            assert main(["trace", str(results), "--otlp-endpoint", receiver.root]) == 0
        assert re.search(r"^sent 14 spans of 2 cells to http://127", capsys.readouterr().out)
        once, twice = receiver.requests
        assert once == twice

    def test_nobody_there(self, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A receiver that is not there fails the verb, in one line."""
        assert main(["trace", str(results), "--otlp-endpoint", "http://127.0.0.1:9"]) == 1
        assert main(["trace", str(results), "--otlp-endpoint", "nowhere"]) == 4
        assert len(capsys.readouterr().err.splitlines()) == 2
