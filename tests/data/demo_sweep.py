"""A realistic results directory, built by functions: 3 tasks × 5 arms × 3 runs of one subject."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import RowWriter, write_sweep

SUBJECT = "mini:anthropic/claude-sonnet-4-5-20250929"
MODEL = "claude-sonnet-4-5-20250929"
PAIRS = {"candidate_workflow": "workflow", "candidate_workflow_direct": "workflow_direct"}
ARMS = ("baseline", "workflow", "candidate_workflow", "workflow_direct", "candidate_workflow_direct")
# Per task: class and size; per arm: share of the size it costs, and runs it resolves of three.
TASKS = {
    "rounding-half-even": ("trivial", 1.0),
    "ledger-aging": ("cross-module", 2.5),
    "fx-drift": ("investigation", 4.0),
}
SHARE = {
    "baseline": 1.0,
    "workflow": 1.6,
    "candidate_workflow": 1.6,
    "workflow_direct": 1.1,
    "candidate_workflow_direct": 0.95,
}
LOST = {("ledger-aging", "baseline", 2): "oracle-failed", ("fx-drift", "baseline", 1): "session-timeout"}
REASONS = {
    "oracle-failed": "2 of 9 oracle tests failed: test_aging[30|60]: assert 'a\\b' == 'a|b'",
    "session-timeout": "the session was ended after 1800 s",
}


def cell_id(task: str, arm: str, subject: str, run: int, variation: int = 0) -> str:
    return f"{task}.v{variation}.{arm}.{subject.replace(':', '-').replace('/', '-')}.r{run}.abc123"


def row(task: str = "a", arm: str = "workflow", run: int = 1, **changes: Any) -> Row:
    """One graded implementation row; every field can be changed by name."""
    subject = changes.get("subject", SUBJECT)
    outcome = changes.get("outcome", "pass")
    base: dict[str, Any] = {
        "cell_id": cell_id(task, arm, subject, run, changes.get("variation", 0)),
        "task": task,
        "task_kind": "implementation",
        "arm": arm,
        "subject": subject,
        "agent": subject.partition(":")[0],
        "run": run,
        "outcome": outcome,
        "kind": {"pass": None, "miss": "oracle-failed", "unusable": "provider-error"}.get(outcome),
        "resolved": outcome == "pass" if outcome in ("pass", "miss") else None,
        "usage": {"ordinary_input": 2000, "cache_read_input": 7000, "cache_write_input": 1000, "total_input": 10000,
                  "output": 500},
        "usage_source": "wire",
        "usage_incomplete": False,
        "requests": 5,
        "failed_requests": 0,
        "cost_usd": 1.0,
        "price_table": "litellm-1.108.7:sha256:0000",
        "num_turns": 5,
        "tool_calls": {"bash": 4},
        "models_answered": [MODEL],
        "timings": {"session": 60.0},
        "started_at": "2026-11-30T12:00:00.000Z",
        "recorded_at": "2026-11-30T12:01:00.000Z",
        "harness_version": "0.1.0",
        "requested_model": subject.partition(":")[2],
        "sandbox": "bwrap",
    }  # fmt: skip
    return Row.model_validate(base | changes)


def _priced(task: str, arm: str, run: int) -> Row:
    size = TASKS[task][1] * SHARE[arm] * (1 + 0.02 * (run - 2))
    total, output = round(24000 * size), round(800 * size)
    kind = LOST.get((task, arm, run))
    return row(
        task, arm, run, class_=TASKS[task][0],
        outcome="miss" if kind else "pass", kind=kind, reason=REASONS[kind] if kind else None,
        usage={"ordinary_input": total // 5, "cache_read_input": total - total // 5, "cache_write_input": 0,
               "total_input": total, "output": output},
        cost_usd=round(3e-6 * total / 2 + 15e-6 * output, 6),
        num_turns=round(5 * size), tool_calls={"bash": round(4 * size), "edit": 2},
        timings={"session": round(40 * size, 3), "workspace": 0.02, "verify": 0.6, "oracle": 0.6},
        churn={"files": 2, "insertions": round(14 * size), "deletions": 3},
        transcript_digest="sha256:" + "0" * 64,
        skills_expected=() if arm == "baseline" else ("work",),
    )  # fmt: skip


def rows() -> list[Row]:
    """The 45 rows in the order a sweep writes them."""
    return [_priced(task, arm, run) for task in TASKS for run in (1, 2, 3) for arm in ARMS]


def arm(name: str, kinds: tuple[str, ...] = ("implementation",), candidate_of: str | None = None) -> dict[str, Any]:
    """An arm's definition; one named candidate_… loads the overlay."""
    incumbent = candidate_of or PAIRS.get(name)
    skills = [] if name == "baseline" else ["plan", "work"] if name.endswith("workflow") else ["work"]
    return {"name": name, "sessions": [{"name": "work"}], "skills": skills, "kinds": list(kinds),
            "candidate_of": incumbent, "overlay": incumbent is not None}  # fmt: skip


def sweep(of: list[Row], **changes: Any) -> Sweep:
    """The manifest of a complete sweep that planned exactly these rows."""
    cells = {entry.cell_id: entry for entry in of}
    tasks = {entry.task: entry.task_kind for entry in of}
    arms = {entry.arm: entry.task_kind for entry in of}
    subjects = sorted({entry.subject for entry in of})
    base: dict[str, Any] = {
        "sweep_id": "20261130T120000Z-1a2b3c",
        "started_at": "2026-11-30T12:00:00.000Z",
        "ended_at": "2026-11-30T12:34:56.000Z",
        "run_status": "complete",
        "exit_status": 0,
        "options": {"runs": 3, "arms": list(arms)},
        "arms": [arm(name, kinds=(kind,)) for name, kind in arms.items()],
        "subjects": [{"subject": s, "agent": s.partition(":")[0], "model": s.partition(":")[2]} for s in subjects],
        "tasks": [{"id": task, "kind": kind, "task_digest": f"sha256:{index:04}", "snapshot_commit": "0" * 40}
                  for index, (task, kind) in enumerate(tasks.items())],
        "versions": {"harness": "0.1.0", "litellm": "1.108.7", "price_table": "litellm-1.108.7:sha256:0000",
                     "agents": {"mini": "mini-swe-agent 2.4.6"}},
        "host": "runner-1",
        "head": "1a2b3c4",
        "planned": [{"cell_id": e.cell_id, "task": e.task, "variation": e.variation, "arm": e.arm, "subject": e.subject,
                     "run": e.run} for e in cells.values()],
    }  # fmt: skip
    return Sweep.model_validate(base | changes)


def demo_sweep() -> Sweep:
    """The manifest of ``rows()``, with a candidate overlay and one task skipped as expensive."""
    return sweep(
        rows(),
        candidate={
            "overlay_digest": "sha256:0bad",
            "files": [{"path": ".claude/skills/work/SKILL.md", "bytes": 812, "sha256": "sha256:0bad"}],
            "target_base_digests": {".claude/skills/work/SKILL.md": "sha256:ba5e"},
            "required_arms": ["candidate_workflow", "candidate_workflow_direct"],
        },
        skipped=[{"kind": "expensive", "task": "year-end-close", "reason": "marked expensive"}],
    )


def write(directory: Path, of: list[Row] | None = None, manifest: Sweep | None = None) -> Path:
    """Write a results directory and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    held = rows() if of is None else of
    write_sweep(directory, manifest or (demo_sweep() if of is None else sweep(held)))
    writer = RowWriter(directory)
    for entry in held:
        writer.append(entry)
    return directory
