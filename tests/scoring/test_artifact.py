"""The artifact of a review, read strictly."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.scoring.artifact import InvalidArtifact, read_artifact

FINDING: dict[str, Any] = {
    "id": "1", "severity": "high", "path": "src\\a.py", "line": 3, "end_line": 4, "category": "correctness",
    "scenario": "s", "evidence": "e", "recommendation": "r", "blocking": True,
}  # fmt: skip


def artifact(*findings: dict[str, Any], verdict: str = "request_changes", **more: Any) -> bytes:
    return json.dumps({"schema_version": 1, "verdict": verdict, "findings": list(findings)} | more).encode()


class TestRead:
    def test_well(self) -> None:
        """A whole review reads; backslashes in paths are slashes."""
        found = read_artifact(artifact(FINDING))
        assert (found.verdict, found.findings[0].path) == ("request_changes", "src/a.py")
        assert read_artifact(artifact(verdict="approve")).findings == ()

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (None, "was never written"),
            (b"", "is empty"),
            (b" \n", "is empty"),
            (b"x" * 300_000, "300,000 bytes: more than 256 KiB"),
            (b'{"a": "\xff"}', "is not UTF-8: byte 7"),
            (b"{", "is not JSON"),
            (b"[" * 100_000, "is not JSON"),
            (b"[]", "wrong shape: not an object"),
            (b'{"verdict": NaN}', "wrong shape: NaN"),
            (b'{"verdict": "approve", "verdict": "approve"}', "the key 'verdict' is there twice"),
            (artifact(*[FINDING] * 101), "101 findings: more than 100"),
            (artifact(FINDING, FINDING), "the same id"),
            (artifact(FINDING, verdict="approve"), "approve, but there are findings"),
            (artifact(FINDING | {"blocking": False}), "no finding is blocking"),
            (artifact(verdict="request_changes"), "no finding is blocking"),
            (artifact(verdict="maybe"), "verdict"),
            (artifact(verdict="comment", extra=1), "extra"),
            (artifact(FINDING | {"more": 1}), "findings.0.more"),
            (artifact({k: v for k, v in FINDING.items() if k != "line"}), "findings.0.line"),
            (artifact(FINDING | {"line": 0}), "findings.0.line"),
            (artifact(FINDING | {"line": True}), "findings.0.line"),
            (artifact(FINDING | {"line": "3"}), "findings.0.line"),
            (artifact(FINDING | {"end_line": 2}), "end_line lies before line"),
            (artifact(FINDING | {"path": "/etc/passwd"}), "not relative"),
            (artifact(FINDING | {"path": "a\\..\\..\\b"}), "not relative"),
            (artifact(FINDING | {"path": "C:\\x"}), "not relative"),
            (artifact(FINDING | {"path": "x" * 513}), "longer than 512 bytes"),
            (artifact(FINDING | {"id": "ä" * 65}), "longer than 128 bytes"),
            (artifact(FINDING | {"evidence": " "}), "findings.0.evidence: is blank"),
            (artifact(FINDING | {"scenario": "x" * 4097}), "longer than 4096 bytes"),
            (artifact(FINDING | {"severity": "blocker"}), "findings.0.severity"),
            (json.dumps({"schema_version": 2, "verdict": "approve", "findings": []}).encode(), "schema_version"),
        ],
    )
    def test_each_fault(self, data: bytes | None, said: str) -> None:
        """Every way to be wrong has its own message, of one line."""
        with pytest.raises(InvalidArtifact, match=r"^review-output\.json ") as caught:
            read_artifact(data)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)

    @given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode) | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ).map(lambda value: json.dumps(value).encode()))  # fmt: skip
    def test_anything(self, data: bytes) -> None:
        """Whatever an agent writes is either a review or refused."""
        with suppress(InvalidArtifact):
            read_artifact(data)
