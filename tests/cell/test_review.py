"""Review cells: the change is there to be read, the artifact is scored, and what is no review is told apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.attack.raid import Raid, Raiders
from tests.reviews import ARMS, CASES, LABELS, PATCH, finding, review, writing
from tests.suite import Suite

pytestmark = pytest.mark.slow

PERFECT = review("request_changes", finding("F1", "high", 2), finding("F2", "low", 9))
SCRIPTS = {
    "perfect": writing(PERFECT),
    "half": writing(review("request_changes", finding("F1", "high", 2), finding("F3", "low", 40))),
    "silent": "exit 0\n",
    "blank": 'printf " \\n" > "$WFBENCH_REVIEW_OUTPUT/review-output.json"\n',
    "wordy": writing(PERFECT.replace('"schema_version": 1', '"schema_version": 1, "summary": "x"')),
    # A session that is at fault: what it left is scored where it is whole.
    "slow": writing(PERFECT) + "sleep 60\n",
    "slow-silent": "sleep 60\n",
    "looks": 'git show HEAD; git log --format=%s; ls -A "$WFBENCH_REVIEW_OUTPUT" | wc -l; cat; git status -s\n',
    "secret": writing(PERFECT.replace("Seen.", "Seen: planted-value-0123456789.")),
}


FILES = {
    "cases/tiny.cases.yaml": CASES,
    "cases/arms.yaml": ARMS,
    "cases/tiny/app.py": "".join(f"line {number}\n" for number in range(1, 51)),
    "oracles/change.patch": PATCH,
    "oracles/labels.json": LABELS,
}


@pytest.fixture(scope="module")
def raid(tmp_path_factory: pytest.TempPathFactory) -> Raid:
    """One sweep over a review task, with a cell for each script."""
    # What a session printed is kept where it is read anyway.
    scripts = {name: "exec 1>&2\n" + text for name, text in SCRIPTS.items()}
    raiders = Raiders(scripts, arm="look", files=FILES, environment={"SOME_API_KEY": "planted-value-0123456789"})
    return raiders.run(tmp_path_factory.mktemp("review"))


def kept(raid: Raid, script: str) -> Any:
    """The review that a cell's artifacts hold, or none."""
    text = raid.artifact(script, "review.json")
    return json.loads(text) if text else None


class TestScores:
    def test_perfect(self, raid: Raid) -> None:
        """A review that finds every label and nothing else, with the right verdict, is a pass with its scores."""
        row = raid.rows()["perfect"]
        assert (row["outcome"], row["kind"], row["resolved"]) == ("pass", None, True), row["reason"]
        assert row["review"]["weighted_f1"] == row["review"]["blocker_recall"] == 1.0
        assert row["review"]["verdict_correct"] is True
        assert (row["churn"], row["oracle_passed"], row["patch_digest"]) == (None, None, None)
        assert kept(raid, "perfect") == json.loads(PERFECT)

    def test_imperfect(self, raid: Raid) -> None:
        """One that is not is a miss that says how far it fell short, and carries its scores."""
        row = raid.rows()["half"]
        assert (row["outcome"], row["kind"]) == ("miss", "review-imperfect")
        assert row["reason"] == "1 of 2 labels missed, 1 finding without a label"
        scores = row["review"]
        assert (scores["true_positives"], scores["false_positives"], scores["false_negatives"]) == (1, 1, 1)
        assert scores["weighted_f1"] == round(2 * (5 / 6) * (5 / 6) / (10 / 6), 6)

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("silent", "review-output.json was never written"),
            ("blank", "review-output.json is empty"),
            ("wordy", "review-output.json has the wrong shape: summary: Extra inputs are not permitted"),
        ],
    )
    def test_no_review(self, raid: Raid, script: str, reason: str) -> None:
        """What is no whole review is unusable, for the exact reason, without scores and without a stored review."""
        row = raid.rows()[script]
        assert (row["outcome"], row["kind"], row["reason"]) == ("unusable", "review-artifact-invalid", reason)
        assert (row["review"], row["resolved"], kept(raid, script)) == (None, None, None)

    def test_late(self, raid: Raid) -> None:
        """A session that ran out of time stays a miss of its own; a whole review that it left is scored."""
        rows = raid.rows()
        assert {rows[name]["kind"] for name in ("slow", "slow-silent")} == {"session-timeout"}
        assert rows["slow"]["review"]["weighted_f1"] == 1.0
        assert rows["slow-silent"]["review"] is None
        assert "never written" not in rows["slow-silent"]["reason"]

    def test_redacted(self, raid: Raid) -> None:
        """No secret of the environment is in a stored review."""
        found = kept(raid, "secret")
        assert raid.rows()["secret"]["outcome"] == "pass"
        assert "planted-value" not in json.dumps(found)
        assert found["findings"][0]["evidence"].startswith("Seen: ")

    def test_bound(self, raid: Raid) -> None:
        """Rows and manifest name the labels by digest, and not by content."""
        manifest = json.loads((raid.results / "sweep.json").read_text())
        (task,) = manifest["tasks"]
        assert [entry["path"] for entry in task["files"]] == ["labels.json"]
        row = raid.rows()["perfect"]
        assert row["oracle_digest"] == task["oracle_digest"]
        assert row["oracle_digest"].startswith("sha256:")
        assert row["start_commit"] != row["snapshot_commit"]


class TestStage:
    def test_change(self, raid: Raid) -> None:
        """The reviewer finds the change as the last commit, an empty output directory, its path in the prompt."""
        said = raid.artifact("looks", "stderr.txt")
        assert "+line two" in said
        assert "change\nsnapshot\n0\n" in said
        assert "Write to /review/review-output.json. Review the change." in said
        assert raid.rows()["looks"]["reason"] == "review-output.json was never written"


@pytest.fixture
def reviews(suite: Suite) -> Suite:
    """A suite with one review task."""
    for name, text in FILES.items():
        suite.put(name, text)
    return suite


def test_outage(reviews: Suite) -> None:
    """What is no review counts towards the outage stop."""
    result = reviews.run("--wfbench-arms=look", "--wfbench-runs=4", "--wfbench-outage-limit=2", agent="idle.sh")
    assert [row["kind"] for row in reviews.rows()] == ["review-artifact-invalid"] * 2
    assert result.ret == 1
    assert "2 consecutive unusable cells" in reviews.sweep()["stop"]["cause"]


def test_host(reviews: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sandbox the agent has a copy of its own: nothing that it does there reaches the next cell."""
    monkeypatch.delenv("CI", raising=False)
    reviews.put("vandal.sh", "#!/bin/sh\ntest -e app.py || exit 1\nrm app.py\n" + writing(PERFECT))
    reviews.run("--wfbench-arms=look", "--wfbench-runs=2", "--wfbench-sandbox=host", agent="vandal.sh")
    assert [row["outcome"] for row in reviews.rows()] == ["pass", "pass"], reviews.rows()
