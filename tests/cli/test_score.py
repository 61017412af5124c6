"""``wfbench score review`` as a black box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_wfbench.cli import main

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "review_scoring.json").read_text())


def files(tmp_path: Path, case: dict[str, Any]) -> tuple[str, str]:
    artifact, labels = tmp_path / "review-output.json", tmp_path / "labels.json"
    findings = [finding | {"id": str(number)} for number, finding in enumerate(case["findings"])]
    wanted = [label | {"id": str(number)} for number, label in enumerate(case["labels"])]
    artifact.write_text(json.dumps({"schema_version": 1, "verdict": case["verdict"], "findings": findings}))
    labels.write_text(json.dumps({"schema_version": 1, "findings": wanted}))
    return str(artifact), str(labels)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_worked_cases(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every worked case that is a whole review gives its numbers; one that is none says why."""
    status = main(["score", "review", *files(tmp_path, case)])
    captured = capsys.readouterr()
    blocking = any(finding["blocking"] for finding in case["findings"])
    incoherent = (case["verdict"] == "approve" and case["findings"]) or (
        case["verdict"] == "request_changes" and not blocking
    )
    if incoherent:
        assert (status, captured.err.startswith("wfbench: review-output.json has the wrong shape")) == (4, True)
    else:
        assert (status, json.loads(captured.out)) == (0, case["expected"])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("{", "labels: Invalid JSON"),
        ('{"schema_version": 1, "findings": [{"id": "1"}]}', "labels: findings.0.severity: Field required"),
        ('{"schema_version": 1, "findings": [], "x": 1}', "labels: x: Extra inputs are not permitted"),
        (json.dumps({"schema_version": 1, "findings": [
            {"id": "1", "severity": "low", "path": "../a", "line_start": 1, "line_end": 1, "category": "c"}]}),
         "is not relative"),
        (json.dumps({"schema_version": 1, "findings": [
            {"id": "1", "severity": "low", "path": "a", "line_start": 2, "line_end": 1, "category": "c"}]}),
         "line_end lies before line_start"),
        (None, "labels.json: no such file"),
    ],
)  # fmt: skip
def test_bad_labels(labels: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels that do not read are a usage error with the key."""
    artifact, path = files(tmp_path, CASES[0])
    if labels is None:
        Path(path).unlink()
    else:
        Path(path).write_text(labels)
    assert main(["score", "review", artifact, path]) == 4
    assert said in capsys.readouterr().err


def test_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A review that is a link is refused."""
    artifact, labels = files(tmp_path, CASES[0])
    Path(artifact).rename(tmp_path / "real.json")
    Path(artifact).symlink_to("real.json")
    assert main(["score", "review", artifact, labels]) == 4
    assert "link" in capsys.readouterr().err
