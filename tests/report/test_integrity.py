"""Whether cells were kept apart, judged by what was bound, and left their transcripts."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_wfbench.evidence.manifest import Sweep, TaskBinding, Versions
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.health import health

BOUND = {"oracle_digest": "sha256:a", "oracle_command_digest": "sha256:b"}


def row(arm: str = "work", run: int = 1, **given: Any) -> Row:
    """A row of which nothing is to be said."""
    known: dict[str, Any] = {
        "cell_id": f"{arm}.{run}", "task": "one", "task_kind": "implementation", "arm": arm, "subject": "s:m",
        "agent": "s", "run": run, "outcome": "pass", "harness_version": "1", "sandbox": "bwrap",
        "transcript_digest": "sha256:t", "usage_incomplete": False, "cost_usd": 0.0, **BOUND,
    }  # fmt: skip
    return Row(**known | given)


def told(*rows: Row, sandbox: Any = "bwrap") -> list[str]:
    """What is said of some rows that were all planned."""
    planned = [{"cell_id": r.cell_id, "task": r.task, "arm": r.arm, "subject": r.subject, "run": r.run} for r in rows]
    manifest = {
        "sweep_id": "x",
        "started_at": "2026-01-01T00:00:00.000Z",
        "versions": Versions(harness="1"),
        "tasks": (TaskBinding(id="one", kind="implementation", **BOUND),),
        "planned": tuple(planned),
        "sandbox": sandbox,
    }
    return list(health(Rows(tuple(rows)), Sweep.model_validate(manifest)))


def changed(fingerprint: str, files: int = 1) -> dict[str, Any]:
    """The fields of a row that left a change."""
    return {"churn_fingerprint": fingerprint, "churn": {"files": files, "insertions": 1, "deletions": 0}}


def test_sound() -> None:
    """Of rows that are sound nothing is said, equal changes under one arm included."""
    assert told(row(run=1, **changed("f")), row(run=2, **changed("f")), row("other", **changed("g"))) == []


def test_contamination() -> None:
    """The very same change under two arms at one task raises the alarm, once, with arms and task."""
    [alarm] = told(row(run=1, **changed("f")), row(run=2, **changed("f")), row("other", **changed("f")))
    assert alarm.startswith("Contamination alarm: 3 attempts of other, work at one (s:m) left the very same change.")


@pytest.mark.parametrize(
    "other", [changed("f", files=0), {}, {"task": "two", "oracle_digest": None, **changed("f")}, {"subject": "t:m"}]
)
def test_no_contamination(other: dict[str, Any]) -> None:
    """No change at all, none that is known, another task or another subject raise none."""
    assert told(row(**changed("f", files=other.get("churn", {}).get("files", 1))), row("other", **other)) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"oracle_digest": "sha256:x"}, "1 task judged by another oracle than the sweep's: one."),
        ({"oracle_command_digest": None}, "1 task judged by another oracle than the sweep's: one."),
        ({"transcript_digest": None}, "1 of 2 attempts left no transcript."),
        ({"sandbox": "host"}, "1 row of attempts without a sandbox: nothing can be promoted on them."),
        ({"reused_from": "earlier"}, "1 row reused from an earlier sweep."),
        (
            {"cost_usd": None, "models_answered": ("m-1",)},
            "1 of 2 attempts have no price: the price table lacks m-1, or one of its prices.",
        ),
        ({"cost_usd": None}, "1 of 2 attempts have no price: the price table lacks their model, or one of its prices."),
        ({"usage_incomplete": True}, "1 of 2 attempts have incomplete usage: their tokens and cost are unknown."),
    ],
)
def test_wanting(given: dict[str, Any], sentence: str) -> None:
    """What one of two rows lacks is said with its number."""
    assert told(row(), row("other", **given)) == [sentence]


def test_model_drift() -> None:
    """A subject that two models answered is named with both."""
    [said] = told(row(models_answered=("a",)), row("other", models_answered=("b",)))
    assert "s:m was answered by 2 models: a, b" in said
