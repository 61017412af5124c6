"""Readers of answers, on what no provider should send."""

from __future__ import annotations

import json

import pytest

from pytest_wfbench.wires import ANTHROPIC, CHAT, EVENT_STEPS, RESPONSES, StreamReader, read_whole

ODD = (None, 5, "text", [], [7], {}, {"message": 5}, True, 1.5)
KEYS = ("type", "choices", "usage", "message", "response", "error", "model", "id")
TYPES = ("message_start", "message_delta", "error", "response.failed", "response.completed")


class TestGarbage:
    @pytest.mark.parametrize("wire", EVENT_STEPS)
    def test_nothing_raises(self, wire: str) -> None:
        """Whatever stands where an event's parts should be, the reader goes on, and what it never read is unknown."""
        reader = StreamReader(wire)
        for event in ODD:
            reader.feed(b"data: %s\n\n" % json.dumps(event).encode())
        for key in KEYS:
            for value in ODD:
                for kind in TYPES:
                    reader.feed(b"data: %s\n\n" % json.dumps({"type": kind, key: value}).encode())
        reader.feed(b"\xff\xfe\x00\n\n:\n\r\n")
        assert reader.reading().model in (None, "text")
        assert read_whole(b"\xff{").finished is False

    @pytest.mark.parametrize("wire", [ANTHROPIC, CHAT, RESPONSES])
    def test_a_line_without_end(self, wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """What never ends is not kept, and the events after it are read."""
        monkeypatch.setattr("pytest_wfbench.wires.EVENT_LIMIT", 1000)
        reader = StreamReader(wire)
        for _ in range(100):
            reader.feed(b"x" * 100)
        assert len(reader._lines.rest) <= 1100
        reader.feed(b"\n\n" + b'data: {"type": "error", "error": {"message": "over"}}\n\n')
        assert reader.reading().error == "over"
