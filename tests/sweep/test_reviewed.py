"""Changes and labels, proven before anything is spent."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.reviews import ARMS, CASES, LABELS, PATCH, finding, review, writing
from tests.suite import Suite

pytestmark = pytest.mark.slow

SETUP = CASES.replace("prompt: Review the change.", "prompt: Review the change.\n    setup: echo one > made.txt")


@pytest.fixture
def reviews(suite: Suite) -> Suite:
    """A suite with one review task."""
    suite.put("cases/tiny.cases.yaml", CASES)
    suite.put("cases/arms.yaml", ARMS)
    suite.put("cases/tiny/app.py", "".join(f"line {number}\n" for number in range(1, 51)))
    suite.put("cases/tiny/sub/last.txt", "no end")
    suite.put("oracles/change.patch", PATCH)
    suite.put("oracles/labels.json", LABELS)
    return suite


def label(**changes: Any) -> dict[str, Any]:
    known = {"severity": "low", "path": "app.py", "line_start": 2, "line_end": 2, "category": "style"}
    return {"id": "a", **known, **changes}


def labels(*found: Any) -> str:
    body = ",\n".join(json.dumps(entry) for entry in found)
    return f'{{"schema_version": 1,\n"findings": [\n{body}\n]}}\n'


def problems(suite: Suite, status: int = 4) -> list[str]:
    """What a sweep says before it is refused, and that nothing was started."""
    result = suite.run("--wfbench-arms=look")
    assert result.ret == status, result.stdout.str()
    assert not suite.sweeps
    return [line for line in (*result.outlines, *result.errlines) if "task finish" in line]


def test_every_fault(reviews: Suite) -> None:
    """Paths and lines that are not in the patched repository are told with file, line, key and remedy, all at once."""
    faulty = labels(
        label(id="a"),
        label(id="b", path="nowhere.py"),
        label(id="c", path="sub"),
        label(id="d", line_end=51),
        label(id="e", line_start=51, line_end=60),
        label(id="f", path="sub/last.txt", line_start=1, line_end=1),
        label(id="g", path="sub/last.txt", line_start=1, line_end=2),
        label(id="h", path="app.py/x"),
    )
    reviews.put("oracles/labels.json", faulty)
    place = "oracles/labels.json:{}: task finish [findings.{}]: "
    gone = "is no file of the repository with the change applied. Name a file that is there after the change"
    beyond = "lines of app.py. Count in the file after the change"
    assert problems(reviews) == [
        place.format(4, "1.path") + f"'nowhere.py' {gone}",
        place.format(5, "2.path") + f"'sub' {gone}",
        place.format(6, "3.line_end") + f"line 51 is beyond the 50 {beyond}",
        place.format(7, "4.line_start") + f"line 51 is beyond the 50 {beyond}",
        place.format(9, "6.line_end")
        + "line 2 is beyond the 1 lines of sub/last.txt. Count in the file after the change",
        place.format(10, "7.path") + f"'app.py/x' {gone}",
    ]


def test_after_the_change(reviews: Suite) -> None:
    """Labels are held against what the change leaves: added lines and files are there, removed ones are not."""
    patch = PATCH + "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+one\n+two\n--- a/sub/last.txt\n+++ /dev/null\n"
    reviews.put("oracles/change.patch", f"{patch}@@ -1 +0,0 @@\n-no end\n\\ No newline at end of file\n")
    new, old = label(path="new.py"), label(id="b", path="sub/last.txt", line_start=1, line_end=1)
    reviews.put("oracles/labels.json", labels(new, old))
    [told] = problems(reviews)
    assert "[findings.1.path]: 'sub/last.txt' is no file" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (labels(label(severity="blocker")), "labels.json:3: task finish [findings.0.severity]: "),
        (labels(label(), label()), "labels.json:1: task finish: two labels have the same id"),
        (labels({"id": "a"}), "labels.json:3: task finish [findings.0.severity]: Field required"),
        ("{", "labels.json:1: task finish: Invalid JSON"),
    ],
)
def test_no_labels(reviews: Suite, text: str, told: str) -> None:
    """What are no labels at all is told with its place in the file."""
    reviews.put("oracles/labels.json", text)
    assert any(told in line for line in problems(reviews)), problems(reviews)


def test_a_change_that_does_not_apply(reviews: Suite) -> None:
    """A patch that does not apply is told with what git says of it."""
    reviews.put("oracles/change.patch", PATCH.replace("line 2\n", "line 22\n"))
    [told] = problems(reviews)
    assert told.startswith(
        "cases/tiny.cases.yaml:3: task finish [patch]: change.patch: patch-failed: error: patch failed"
    )


def checked(suite: Suite, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `wfbench check` on the suite."""
    argv = [sys.executable, "-m", "pytest_wfbench.cli", "check", "cases", *arguments]
    return subprocess.run(argv, cwd=suite.path, capture_output=True, text=True)


def test_check(reviews: Suite) -> None:
    """`wfbench check` proves reviews as well, and exits 1 on a label that is not there."""
    ran = checked(reviews, "--json")
    [proof] = json.loads(ran.stdout)
    assert (ran.returncode, proof["kind"], proof["proven"]) == (0, "labels", True)
    reviews.put("oracles/labels.json", labels(label(line_end=900)))
    ran = checked(reviews)
    assert ran.returncode == 1
    assert "line 900 is beyond the 50 lines of app.py" in ran.stdout


def test_bound(reviews: Suite) -> None:
    """Another change or another label makes another task; where the suite lies does not matter."""
    reviews.put("reviewer.sh", "#!/bin/sh\n" + writing(review("comment", finding("F", "low", 9))))
    digests = []
    for name, old, new in ((None, "", ""), ("labels.json", "style", "taste"), ("change.patch", "line two", "line 2a")):
        if name:
            reviews.edit(f"oracles/{name}", old, new)
        reviews.run("--wfbench-arms=look", agent="reviewer.sh")
        [row] = reviews.rows()
        digests.append((row["task_digest"], row["oracle_digest"]))
    (task, oracle), (task_2, oracle_2), (task_3, oracle_3) = digests
    assert len({task, task_2, task_3}) == 3
    assert oracle != oracle_2 == oracle_3


def test_setup(reviews: Suite) -> None:
    """What setup made is there and no part of the change under review."""
    reviews.put("cases/tiny.cases.yaml", SETUP)
    reviews.put("look.sh", "#!/bin/sh\ncat made.txt >&2; git show --stat --format=%s >&2\n")
    reviews.run("--wfbench-arms=look", agent="look.sh")
    [row] = reviews.rows()
    said = (reviews.results / "cells" / row["cell_id"] / "1" / "stderr.txt").read_text().split("\n")
    assert said[1:3] == ["one", "change"]
    assert "made.txt" not in "\n".join(said[2:])
