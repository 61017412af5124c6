"""What counts as a verdict."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_wfbench.scoring.verdict import InvalidVerdict, Verdict, majority, read_verdict

GOOD = '{"pass": true, "score": 0.8, "reason": "It names both."}'


class TestForm:
    @pytest.mark.parametrize("text", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"])
    def test_an_object_alone_or_in_one_fence(self, text: str) -> None:
        """A verdict is one JSON object, bare or in a fence."""
        assert read_verdict(text) == Verdict(True, 0.8, "It names both.")

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "not JSON"),
            ("yes", "not JSON"),
            (f"Here: {GOOD}", "not JSON"),
            (f"{GOOD}\n{GOOD}", "not JSON"),
            ("[true]", "no object"),
            ('{"pass": true, "score": 1}', "no object"),
            ('{"pass": true, "score": 1, "reason": "It is.", "note": 1}', "no object"),
            ('{"pass": "true", "score": 1, "reason": "It is."}', "neither true nor false"),
            ('{"pass": 1, "score": 1, "reason": "It is."}', "neither true nor false"),
            ('{"pass": null, "score": 1, "reason": "It is."}', "neither true nor false"),
            ('{"pass": true, "score": "1", "reason": "It is."}', "no number"),
            ('{"pass": true, "score": true, "reason": "It is."}', "no number"),
            ('{"pass": true, "score": NaN, "reason": "It is."}', "no number"),
            ('{"pass": true, "score": 1e999, "reason": "It is."}', "no number"),
            ('{"pass": true, "score": 1.01, "reason": "It is."}', "no number"),
            ('{"pass": false, "score": -0.1, "reason": "It is."}', "no number"),
            ('{"pass": true, "score": 0, "reason": "It is."}', "contradicts"),
            ('{"pass": false, "score": 1, "reason": "It is."}', "contradicts"),
            ('{"pass": false, "score": 0.5, "reason": "It is."}', "contradicts"),
            ('{"pass": true, "pass": false, "score": 1, "reason": "It is."}', "twice"),
            ('{"pass": true, "score": 1, "reason": ["It is."]}', "no reason"),
            ("[" * 200_000, "too long"),
            ("[" * 50_000, "not JSON"),
        ],
    )
    def test_anything_else_is_none(self, text: str, why: str) -> None:
        """A verdict that is not exactly one is refused, and it is said why."""
        with pytest.raises(InvalidVerdict, match=why):
            read_verdict(text)

    @pytest.mark.parametrize("reason", ["", "  ", "...", "-", "n/a", "N/A.", "<reason>", "string", "TODO", "None", "1"])
    def test_a_placeholder_is_no_reason(self, reason: str) -> None:
        """A reason says something."""
        with pytest.raises(InvalidVerdict, match="no reason"):
            read_verdict(json.dumps({"pass": True, "score": 1, "reason": reason}))

    @given(st.text(max_size=300))
    def test_no_text_breaks_it(self, text: str) -> None:
        """Whatever a judge says is a verdict or is not."""
        with suppress(InvalidVerdict):
            read_verdict(text)


class TestMajority:
    def test_most_decide(self) -> None:
        """Two of three decide; agreement, median and the most decided reason stand beside it."""
        found = majority([Verdict(True, 0.9, "a"), Verdict(False, 0.2, "b"), Verdict(False, 0.1, "c")])
        assert (found.passed, found.score, found.reason) == (False, 0.2, "c")
        assert found.agreement == pytest.approx(2 / 3)

    def test_one_agrees_with_itself(self) -> None:
        """A single verdict is its own majority."""
        assert majority([Verdict(True, 0.9, "a")]).agreement == 1.0
