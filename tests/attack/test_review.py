"""Reviewers that are out for more than a review: labels, the workspace, and what a review may be written as."""

from __future__ import annotations

import json

import pytest

from tests.attack.raid import Raid, Raiders
from tests.reviews import ARMS, CASES, LABELS, PATCH, finding, review, writing

pytestmark = pytest.mark.slow

PERFECT = review("request_changes", finding("F1", "high", 2), finding("F2", "low", 9))
MANY = review("comment", *(finding(f"F{number}", "low", number + 1) for number in range(101)))
OUT = '"$WFBENCH_REVIEW_OUTPUT"'
FILE = '"$WFBENCH_REVIEW_OUTPUT/review-output.json"'
ELSEWHERE = writing(PERFECT).replace("$WFBENCH_REVIEW_OUTPUT/review-output.json", "/tmp/mine.json")

NEVER = "review-output.json was never written"

ACTS = frozenset({"wrote", "removed", "moved", "committed", "mounted", "changed"})

# What is no review, and how that is told.
NO_REVIEW = {
    "link": (f"{ELSEWHERE}ln -s /tmp/mine.json {FILE}", "a link, not a regular file"),
    "inner-link": (f"{writing(PERFECT)}mv {FILE} {OUT}/x; ln -s x {FILE}", "a link, not a regular file"),
    "system-link": (f"ln -s /etc/passwd {FILE}", "a link, not a regular file"),
    "fifo": (f"mkfifo {FILE}", "not a regular file"),
    "socket": (
        "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).bind("
        'os.environ["WFBENCH_REVIEW_OUTPUT"] + "/review-output.json")\'',
        "cannot be read: No such device or address",
    ),
    "directory": (f"mkdir {FILE}", "not a regular file"),
    "empty": (f": > {FILE}", "review-output.json is empty"),
    "large": (f"head -c 300000 /dev/zero | tr '\\0' ' ' > {FILE}", "300000 bytes, more than the 262144 allowed"),
    "latin-1": (f'printf \'{{"a": "\\xe4"}}\' > {FILE}', "review-output.json is not UTF-8: byte 7"),
    "no-json": (f"echo LGTM > {FILE}", "review-output.json is not JSON: Expecting value in line 1"),
    "deep": (f"head -c 200000 /dev/zero | tr '\\0' '[' > {FILE}", "is not JSON: nested too deeply"),
    "101-findings": (writing(MANY), "review-output.json has 101 findings: more than 100"),
    "beside": (f"{writing(PERFECT)}mv {FILE} {OUT}/review.json && echo made", NEVER),
    "elsewhere": (f"{ELSEWHERE}test -s /tmp/mine.json && echo made", NEVER),
    "moved-away": (f"{writing(PERFECT)}test -s {FILE} && echo made; mv {OUT} /tmp/away; rm -rf {OUT}/*", NEVER),
    "climbing": (
        writing(review("comment", finding("F1", "low", 9, path="../../etc/passwd"))),
        "findings.0.path: is not relative to the repository",
    ),
}
# What ends in a review all the same, or in a miss of the agent's own.
OTHERS = {
    "closed": f"{writing(PERFECT)}chmod 0 {FILE}; chmod 0 {OUT}",
    "hard-link": f"{ELSEWHERE}cp /tmp/mine.json {OUT}/x; ln {OUT}/x {FILE}",
    "rewriter": (
        f"{writing(PERFECT)}(trap '' TERM HUP; while :; do sleep 0.05; echo x >> {FILE}; mkdir -p {OUT}/d; done) &\n"
        "disown; sleep 0.3"
    ),
    "filler": f"head -c 30000000 /dev/zero > {OUT}/big; sleep 3",
    "crowd": f"for i in $(seq 300); do : > {OUT}/$i; done; sleep 3",
}
READERS = {
    "writer": r"""
for path in app.py new.txt .git/HEAD .git/index .git/refs/heads/x .claude/x; do
  { mkdir -p "$(dirname $path)"; echo x >> $path; } && echo wrote $path
done
rm app.py && echo removed
mv .git /tmp/g && echo moved
git commit -q --allow-empty -m x && echo committed
mount -o remount,rw /workspace && echo mounted
chmod u+w app.py && echo changed
ls app.py
tail -n 1 app.py
""",
    "reader": r"""
env
mount
grep -rls hidden-label /workspace /review /tmp /run /opt /home /etc /dev/shm
find / -path /proc -prune -o -path /usr -prune -o ( -name labels.json -o -name change.patch ) -print
git log --all -p | grep -c hidden-label
echo end
""".replace("( ", r"\( ").replace(" )", r" \)"),
}


@pytest.fixture(scope="module")
def raid(tmp_path_factory: pytest.TempPathFactory) -> Raid:
    """One sweep over a review task, with a cell for each script."""
    files = {
        "cases/tiny.cases.yaml": CASES.replace("{session: 5s}", "{session: 20s}"),
        "cases/arms.yaml": ARMS,
        "cases/tiny/app.py": "".join(f"line {number}\n" for number in range(1, 51)),
        "oracles/change.patch": PATCH,
        "oracles/labels.json": LABELS,
    }
    scripts = {name: text for name, (text, _) in NO_REVIEW.items()} | OTHERS | READERS
    told = {name: f"exec 1>&2\n{text}\nexit 0\n" for name, text in scripts.items()}
    return Raiders(told, arm="look", files=files).run(tmp_path_factory.mktemp("review"))


class TestArtifact:
    @pytest.mark.parametrize("name", NO_REVIEW)
    def test_refused(self, raid: Raid, name: str) -> None:
        """What is no review of its own in the place for it is unusable, for the exact reason, and has no scores."""
        row = raid.rows()[name]
        assert (row["outcome"], row["kind"], row["review"]) == ("unusable", "review-artifact-invalid", None)
        assert NO_REVIEW[name][1] in row["reason"]
        assert "root:" not in row["reason"]
        assert raid.artifact(name, "review.json") == ""

    @pytest.mark.parametrize("name", [name for name, (_, reason) in NO_REVIEW.items() if reason == NEVER])
    def test_written_all_the_same(self, raid: Raid, name: str) -> None:
        """Where no review was found there had been one, in another place or at another time."""
        assert "made" in raid.artifact(name, "stderr.txt").splitlines()

    def test_closed(self, raid: Raid) -> None:
        """A review that its own user may not read is told as such, or read by a harness that may."""
        row = raid.rows()["closed"]
        assert row["outcome"] == "pass" or "cannot be read: Permission denied" in row["reason"]
        assert "cleanup" not in (row["reason"] or "")

    def test_linked(self, raid: Raid) -> None:
        """A second name in the same directory does no harm."""
        assert raid.rows()["hard-link"]["outcome"] == "pass"

    def test_nobody_writes_afterwards(self, raid: Raid) -> None:
        """What a session left running has ended before the review is read."""
        row = raid.rows()["rewriter"]
        assert (row["outcome"], row["kind"]) == ("unusable", "review-artifact-invalid"), row["reason"]
        assert "review-output.json is not JSON: Extra data" in row["reason"]
        assert "cleanup" not in row["reason"]

    def test_limits(self, raid: Raid) -> None:
        """The task's limits on bytes and names hold for the directory of the review."""
        rows = raid.rows()
        assert {rows[name]["kind"] for name in ("filler", "crowd")} == {"limit-disk"}


class TestWorkspace:
    def test_read_only(self, raid: Raid) -> None:
        """Nothing in the workspace can be written, removed, moved or committed; it stays as it was."""
        said = raid.artifact("writer", "stderr.txt").rstrip().splitlines()
        done = [line for line in said if line.split(" ")[0] in ACTS]
        assert done == []
        assert said[-2:] == ["app.py", "line 50"]

    def test_labels_are_hidden(self, raid: Raid) -> None:
        """No file, mount, variable or object that a reviewer can see holds labels, or names them."""
        said = raid.artifact("reader", "stderr.txt")
        assert said.rstrip().endswith("\n0\nend")
        assert "hidden-label" not in said
        assert "labels.json" not in said
        assert str(raid.path) not in said

    def test_results_hold_no_labels(self, raid: Raid) -> None:
        """Nothing that a sweep leaves tells what a label says."""
        text = "".join(path.read_text(errors="replace") for path in raid.results.rglob("*") if path.is_file())
        assert json.loads(LABELS)["findings"][0]["id"] not in text
