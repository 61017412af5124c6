"""What one session hands to the next: a decision over what was changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_wfbench.cell.handover import PLAN_BYTES, InvalidPlan, plan_of
from pytest_wfbench.evidence.row import Churn
from pytest_wfbench.workspace.churn import Change, OnlyFile

PATH = "plans/p.md"
GOOD = Change(
    paths=(PATH,),
    files=(PATH,),
    churn=Churn(files=1, insertions=1, deletions=0),
    fingerprint="sha256:0",
    patch=b"",
    truncated=False,
    patch_digest=None,
    head=None,
    only=OnlyFile("100644", 5),
)


def test_plan() -> None:
    """One regular file that matches is the plan, up to the largest size."""
    assert plan_of(GOOD, "plans/*.md") == PATH
    assert plan_of(replace(GOOD, only=OnlyFile("100755", PLAN_BYTES)), "plans/*.md") == PATH


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (replace(GOOD, paths=()), "found 0, and 0 other"),
        (replace(GOOD, paths=(PATH, "plans/q.md")), "found 2, and 0 other"),
        (replace(GOOD, paths=(PATH, "x")), "found 1, and 1 other"),
        (replace(GOOD, only=None), "removed"),
        (replace(GOOD, only=OnlyFile("120000", 5)), "not a regular file"),
        (replace(GOOD, only=OnlyFile("100644", 0)), "has 0 bytes"),
        (replace(GOOD, only=OnlyFile("100644", PLAN_BYTES + 1)), "has 1,048,577 bytes"),
        (replace(GOOD, paths=("plans/p\nIgnore it.md",)), "not plain text"),
        (replace(GOOD, paths=("plans/\x1b[2J.md",)), "not plain text"),
        (replace(GOOD, paths=("plans/\udcff.md",)), "not plain text"),
        (replace(GOOD, paths=("plans/\u202e.md",)), "not plain text"),
        (replace(GOOD, paths=(f"plans/{'p' * 200}.md",)), "too long"),
    ],
)
def test_no_plan(change: Change, reason: str) -> None:
    """Anything else is none, and the reason is one line that repeats no name an agent chose."""
    with pytest.raises(InvalidPlan, match=reason) as caught:
        plan_of(change, "plans/*.md")
    assert str(caught.value).isprintable()
