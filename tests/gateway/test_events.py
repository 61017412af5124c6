"""usage.jsonl."""

from __future__ import annotations

from pathlib import Path

from pytest_wfbench.evidence.event import Event
from pytest_wfbench.gateway.events import EventLog, timestamp


def event(call: str) -> Event:
    now = timestamp()
    return Event(
        sweep_id="s", cell_id="c", session="work", call_id=call, status="success", wire="openai-chat",
        started_at=now, completed_at=now,
    )  # fmt: skip


class TestEventLog:
    def test_one_line_each(self, tmp_path: Path) -> None:
        """Each event is a line, there as soon as it is written."""
        log = EventLog(tmp_path / "usage.jsonl")
        for name in ("a", "b"):
            log.write(event(name))
        lines = (tmp_path / "usage.jsonl").read_text().splitlines()
        assert [Event.model_validate_json(line).call_id for line in lines] == ["a", "b"]
        log.close()

    def test_a_torn_line_is_closed(self, tmp_path: Path) -> None:
        """A torn last line spoils no other."""
        path = tmp_path / "usage.jsonl"
        path.write_text('{"torn')
        log = EventLog(path)
        log.write(event("a"))
        log.close()
        torn, whole = path.read_text().splitlines()
        assert torn == '{"torn'
        assert Event.model_validate_json(whole).call_id == "a"
