"""What was wrong with a session: a decision over process, meter and stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_wfbench.agents.stream import Final, SkillUse, Transcript
from pytest_wfbench.cell.sessions import Fault, session_fault
from pytest_wfbench.gateway.api import Event, SessionUsage
from pytest_wfbench.matrix.arms import SessionSpec
from pytest_wfbench.sandbox.spec import Finished

WELL = Finished(status=0, stdout=b"", stderr=b"", seconds=3.0)
PLAIN = SessionSpec(name="work")
SKILLED = SessionSpec(name="work", skill="work")
OK = Transcript(events=(Final(status="ok"),))
BAD = Transcript(events=(Final(status="error", error="API Error: 500\n  overloaded"),))


def event(status: str = "success", **fields: Any) -> Event:
    known = {
        "sweep_id": "s",
        "cell_id": "c",
        "session": "work",
        "call_id": "1",
        "attempt": 1,
        "status": status,
        "requested_model": "m",
        "wire": "anthropic-messages",
        "started_at": "2026-01-01T00:00:00.000Z",
        "completed_at": "2026-01-01T00:00:01.000Z",
    }
    return Event.model_validate({**known, **fields})


ANSWERED = SessionUsage(events=(event(),))
REFUSED = event("failure", http_status=529, error_message="overloaded, sk-gone", error_class="overloaded_error")
COUNTED = event(kind="count")


def fault(
    finished: Finished = WELL,
    transcript: Transcript = OK,
    usage: SessionUsage = ANSWERED,
    spec: SessionSpec = PLAIN,
    model: bool = True,
) -> Fault | None:
    return session_fault(spec.skill, finished, transcript, usage, model)


def kind(found: Fault | None) -> tuple[str, str] | None:
    return (found.outcome, found.kind) if found else None


class TestProcess:
    def test_well(self) -> None:
        """A session that ended well, with a model that answered, has no fault."""
        assert fault() is None
        assert fault(usage=SessionUsage(), model=False) is None

    @pytest.mark.parametrize(
        ("finished", "expected"),
        [
            (replace(WELL, started=False, status=None, stderr=b"bwrap: no\n"), ("unusable", "infra-error")),
            (replace(WELL, cancelled=True), ("unusable", "cancelled")),
            (replace(WELL, limit="memory"), ("miss", "limit-memory")),
            (replace(WELL, limit="output"), ("miss", "limit-output")),
            (replace(WELL, status=None, timed_out=True), ("miss", "session-timeout")),
        ],
    )
    def test_ended_otherwise(self, finished: Finished, expected: tuple[str, str]) -> None:
        """What ended the process comes first, whatever the stream says; a limit is the candidate's doing."""
        for transcript in (OK, BAD):
            assert kind(fault(finished, transcript)) == expected

    @pytest.mark.parametrize("usage", [SessionUsage(waiting=True), SessionUsage(open_calls=1)])
    def test_timeout_while_the_provider_owed(self, usage: SessionUsage) -> None:
        """A wall clock that runs out while an upstream request is open is the provider's fault."""
        assert kind(fault(replace(WELL, status=None, timed_out=True), usage=usage)) == ("unusable", "provider-error")

    @pytest.mark.parametrize(
        ("last", "expected"),
        [
            (event("failure", http_status=529), "provider-error"),
            (event("failure", http_status=429), "provider-error"),
            (event("failure"), "provider-error"),
            (event("cut", http_status=200), "provider-error"),
            (event("failure", http_status=400), "session-timeout"),
            (event("failure", http_status=500, wire="litellm"), "session-timeout"),
            (event("cancelled", http_status=200), "session-timeout"),
            (event(), "session-timeout"),
        ],
    )
    def test_timeout_after_a_failure(self, last: Event, expected: str) -> None:
        """An agent that waits before it asks again has no answer yet, unless its own request was the fault."""
        found = fault(replace(WELL, status=None, timed_out=True), usage=SessionUsage(events=(event(), last)))
        assert found is not None
        assert found.kind == expected


class TestGate:
    @pytest.mark.parametrize(
        ("whose", "expected"),
        [
            ("cell", ("miss", "budget-exceeded")),
            ("sweep", ("unusable", "cancelled")),
            ("provider", ("unusable", "provider-error")),
        ],
    )
    @pytest.mark.parametrize("timed_out", [False, True])
    def test_budgets(self, whose: Any, expected: tuple[str, str], timed_out: bool) -> None:
        """A cell's own budget is the candidate's doing; the sweep's, and one that a provider wasted, are not."""
        refused = SessionUsage(events=(event(),), over_budget=whose)
        for transcript in (OK, BAD):
            assert kind(fault(replace(WELL, timed_out=timed_out), transcript, refused)) == expected

    def test_a_limit_and_a_budget(self) -> None:
        """A sweep that ends cuts whatever was going on; a cell's limit comes before its budget."""
        memory = replace(WELL, limit="memory")
        assert kind(fault(memory, usage=SessionUsage(over_budget="sweep"))) == ("unusable", "cancelled")
        assert kind(fault(memory, usage=SessionUsage(over_budget="cell"))) == ("miss", "limit-memory")

    @pytest.mark.parametrize(
        ("stood", "standing", "expected"),
        [
            (0.0, True, ("unusable", "infra-error")),
            (5.0, False, ("unusable", "infra-error")),
            (3.0, False, ("miss", "session-timeout")),
        ],
    )
    def test_time_at_the_gate(self, stood: float, standing: bool, expected: tuple[str, str]) -> None:
        """A wall clock that runs out at our own gate, or after much of it was spent there, is not the candidate's."""
        late = replace(WELL, status=None, timed_out=True, seconds=40.0)
        assert kind(fault(late, usage=SessionUsage(events=(event(),), stood=stood, standing=standing))) == expected
        assert fault(usage=SessionUsage(events=(event(),), stood=stood, standing=standing)) is None


class TestModel:
    def test_no_answer(self) -> None:
        """A model was expected and no answer was seen: no-output; counting tokens is no answer."""
        assert kind(fault(usage=SessionUsage())) == ("unusable", "no-output")
        assert kind(fault(usage=SessionUsage(events=(COUNTED,)))) == ("unusable", "no-output")

    def test_only_failures(self) -> None:
        """Calls that all failed are the provider's fault, in its own words, on one line."""
        found = fault(usage=SessionUsage(events=(REFUSED,)))
        assert kind(found) == ("unusable", "provider-error")
        assert found
        assert found.reason == "HTTP 529: overloaded, sk-gone"

    def test_recovered(self) -> None:
        """A failure that the agent recovered from is no fault."""
        assert fault(usage=SessionUsage(events=(REFUSED, event()))) is None

    def test_crashed_on_the_provider(self) -> None:
        """An agent that ended in error right after a failed call did so for the provider's sake, else for its own."""
        assert kind(fault(transcript=BAD, usage=SessionUsage(events=(event(), REFUSED)))) == (
            "unusable",
            "provider-error",
        )
        own = fault(transcript=BAD)
        assert kind(own) == ("unusable", "session-error")
        assert own
        assert own.reason == "API Error: 500 overloaded"


class TestStream:
    def test_no_evidence(self) -> None:
        """A stream that is torn or has no end is evidence of nothing."""
        torn = Transcript(events=(Final(status="ok"),), fault="the last line of the event stream is torn")
        assert kind(fault(transcript=torn)) == ("unusable", "evidence-unverified")

    def test_skill(self) -> None:
        """A session that was to use a skill and did not, or failed to, is a miss."""
        failed = Transcript(events=(SkillUse(name="work", call_id="1", ok=False), Final(status="ok")))
        used = Transcript(events=(SkillUse(name="work", call_id="1", ok=True), Final(status="ok")))
        other = Transcript(events=(SkillUse(name="plan", call_id="1", ok=True), Final(status="ok")))
        for transcript in (OK, failed, other):
            assert kind(fault(transcript=transcript, spec=SKILLED)) == ("miss", "skill-not-invoked")
        assert fault(transcript=used, spec=SKILLED) is None

    def test_order(self) -> None:
        """Where several apply the process comes before the meter, and the meter before the stream."""
        late = replace(WELL, status=None, timed_out=True)
        assert kind(fault(late, BAD, SessionUsage(), SKILLED)) == ("miss", "session-timeout")
        assert kind(fault(WELL, BAD, SessionUsage(), SKILLED)) == ("unusable", "no-output")
        assert kind(fault(WELL, BAD, ANSWERED, SKILLED)) == ("unusable", "session-error")
