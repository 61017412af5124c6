"""What a results directory must be before anything of it is applied, and the verb that does it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_wfbench import clock
from pytest_wfbench.cli import main
from pytest_wfbench.derive import derive, write_promotion
from pytest_wfbench.digests import digest_bytes, digest_tree
from pytest_wfbench.evidence.candidate import write_candidate

OLD, NEW = b"old\n", b"new\n"
FILE, MIRROR = ".claude/skills/work/SKILL.md", "mirror/work/SKILL.md"
SNAPSHOT = "1" * 40
SCHEMA5 = Path(__file__).parents[1] / "data" / "promotion_schema5.json"

Make = Callable[..., Path]


@pytest.fixture
def results(tmp_path: Path, demo: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a results directory whose one candidate is promoted, or spoil it; now is a day after its end."""
    monkeypatch.setattr(clock, "_read", lambda: clock.datetime(2026, 12, 1, tzinfo=clock.UTC))

    def make(spoil: Callable[[list[dict[str, Any]], dict[str, Any]], None] | None = None) -> Path:
        files = {"work/SKILL.md": NEW}
        overlay = digest_tree(files.items())
        rows = [
            demo.row(
                "a", arm, run, cost_usd=cost, task_digest="t", prompt_digest="p", oracle_digest="o",
                snapshot_commit=SNAPSHOT, overlay_digest=overlay if arm == "candidate_workflow_direct" else None,
            )
            for arm, cost in (("workflow_direct", 1.0), ("candidate_workflow_direct", 0.5))
            for run in (1, 2, 3)
        ]  # fmt: skip
        bound = {"path": "work/SKILL.md", "bytes": len(NEW), "sha256": digest_bytes(NEW)}
        manifest: dict[str, Any] = {
            "tasks": [{"id": "a", "kind": "implementation", "task_digest": "t", "prompts": ["p"], "oracle_digest": "o",
                       "snapshot_commit": SNAPSHOT}],
            "candidate": {"overlay_digest": overlay, "files": [bound], "mirrors": ["mirror"],
                          "target_base_digests": {FILE: digest_bytes(OLD)},
                          "required_arms": ["candidate_workflow_direct"]},
        }  # fmt: skip
        plain = [row.model_dump(by_alias=True) for row in rows]
        planned = rows
        if spoil:
            spoil(plain, manifest)
            rows = [type(row).model_validate(entry) for row, entry in zip(rows, plain, strict=False)]
        directory = tmp_path / "results"
        demo.write(directory, rows, demo.sweep(planned, **manifest))
        write_candidate(directory, files.items())
        write_promotion(directory, derive(directory))
        return directory

    return make


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for path in (FILE, MIRROR):
        (tmp_path / "repo" / path).parent.mkdir(parents=True)
        (tmp_path / "repo" / path).write_bytes(OLD)
    return tmp_path / "repo"


def contents(repo: Path) -> tuple[bytes, ...]:
    assert not list(repo.rglob("*wfbench*"))
    return tuple((repo / path).read_bytes() for path in (FILE, MIRROR))


def refused(directory: Path, repo: Path, capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    assert main(["apply", str(directory), "--to", str(repo)]) == status
    assert contents(repo) == (OLD, OLD)
    return capsys.readouterr().err


class TestVerb:
    def test_applies(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The file and its mirror are the candidate's; a second time there is nothing to apply."""
        directory = results()
        assert main(["apply", str(directory), "--to", str(repo)]) == 0
        assert contents(repo) == (NEW, NEW)
        assert capsys.readouterr().out == f"changed {FILE}\nchanged {MIRROR}\n"
        assert main(["apply", str(directory), "--to", str(repo)]) == 1
        assert f"{FILE} is the candidate's file already" in capsys.readouterr().err

    def test_dry_run(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The diff is printed, mirror included, and nothing changes."""
        assert main(["apply", str(results()), "--to", str(repo), "--dry-run"]) == 0
        assert contents(repo) == (OLD, OLD)
        out = capsys.readouterr().out
        assert f"--- a/{FILE}\n+++ b/{FILE}\n@@ -1 +1 @@\n-old\n+new\n" in out
        assert f"+++ b/{MIRROR}" in out

    def test_nothing_to_recover(self, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Recovering where nothing was cut short says so."""
        assert main(["apply", "--recover", "--to", str(repo)]) == 0
        assert capsys.readouterr().out.startswith("nothing to recover")
        assert main(["apply", "--to", str(repo)]) == 4


class TestRefused:
    def test_edited(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A promotion.json edited by hand is refused, and the difference shown."""
        directory = results()
        path = directory / "promotion.json"
        path.write_text(path.read_text().replace('"min_runs": 3', '"min_runs": 1'))
        told = refused(directory, repo, capsys)
        assert "policy.candidate_workflow_direct.options.min_runs: the file says 1, the rows say 3." in told

    def test_not_promoted(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A candidate that is kept out is refused with the gate's reason, whatever the file says."""

        def dearer(rows: list[dict[str, Any]], manifest: dict[str, Any]) -> None:
            for row in rows[3:]:
                row["cost_usd"] = 0.99

        directory = results(dearer)
        assert "is not promoted (keep_incumbent): Median cost_usd" in refused(directory, repo, capsys)
        path = directory / "promotion.json"
        path.write_text(path.read_text().replace("keep_incumbent", "promote"))
        assert "the file says 'promote', the rows say 'keep_incumbent'" in refused(directory, repo, capsys)

    @pytest.mark.parametrize(
        ("name", "value", "told"),
        [
            ("overlay_digest", "sha256:else", "candidate_workflow_direct: the overlay is not the bound one: 1 of 6"),
            ("task_digest", "x", "a: the task is not the bound one: 1 of 6 rows."),
            ("prompt_digest", "x", "a: the prompt is not the bound one: 1 of 6 rows."),
            ("oracle_digest", None, "a: the oracle is not the bound one: 1 of 6 rows."),
            ("snapshot_commit", "2" * 40, "a: the snapshot is not the bound one: 1 of 6 rows."),
            ("sandbox", "host", "1 of 6 rows were made outside the bwrap sandbox."),
            ("outcome", "unusable", "is not promoted (insufficient_evidence)"),
        ],
    )
    def test_rows(
        self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str], name: str, value: Any, told: str
    ) -> None:
        """One row that is bound to something else, or is no evidence, is enough to refuse."""
        directory = results(lambda rows, manifest: rows[4].update({name: value}))
        assert told in refused(directory, repo, capsys)

    def test_arm_missing(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """An overlay that needs another arm as well is refused."""
        needs = ["candidate_workflow", "candidate_workflow_direct"]
        directory = results(lambda rows, manifest: manifest["candidate"].update(required_arms=needs))
        assert "The overlay needs candidate_workflow, of which 0 cells were run." in refused(directory, repo, capsys)

    def test_expired(
        self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Evidence older than 90 days is refused."""
        directory = results()
        monkeypatch.setattr(clock, "_read", lambda: clock.datetime(2027, 3, 1, tzinfo=clock.UTC))
        assert "The evidence expired at 2027-02-28T12:34:56.000Z" in refused(directory, repo, capsys)

    def test_incomplete(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A sweep that was cut short is refused."""
        directory = results(lambda rows, manifest: manifest.update(run_status="aborted"))
        assert "The sweep is aborted" in refused(directory, repo, capsys)

    @pytest.mark.parametrize("how", ["changed", "added", "missing", "link", "program"])
    def test_candidate(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
        """Candidate files that are not those of the evidence are refused."""
        directory = results()
        kept = directory / "candidate/work/SKILL.md"
        if how == "changed":
            kept.write_bytes(b"worse\n")
        elif how == "added":
            kept.with_name("more.md").write_bytes(b"more\n")
        elif how == "program":
            kept.with_name("run.sh").write_bytes(b"more\n")
        else:
            kept.rename(directory / "kept.md")
            if how == "link":
                kept.symlink_to(directory / "kept.md")
        told = refused(directory, repo, capsys)
        assert {"program": "not a Markdown file", "missing": "the overlay is empty", "link": "a link"}.get(
            how, "the evidence is bound to"
        ) in told

    def test_schema_5(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Schema 5 is never applied, and the message says what to do."""
        directory = results()
        shutil.copy(SCHEMA5, directory / "promotion.json")
        assert "Run the sweep again" in refused(directory, repo, capsys)

    def test_unreadable(self, results: Make, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Without a promotion.json, or with one that does not read, the verb is used wrongly."""
        directory = results()
        (directory / "promotion.json").write_text(json.dumps({"schema_version": 7}))
        assert "schema 7, this version reads 5 and 6" in refused(directory, repo, capsys, status=4)
        (directory / "promotion.json").unlink()
        assert "cannot be read" in refused(directory, repo, capsys, status=4)
