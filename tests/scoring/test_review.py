"""Reviews scored: the worked cases, and what holds for any review."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from pytest_wfbench.scoring.artifact import Artifact, Finding
from pytest_wfbench.scoring.exact import best_assignment
from pytest_wfbench.scoring.labels import Label
from pytest_wfbench.scoring.matching import Pair, is_eligible, match
from pytest_wfbench.scoring.review import ReviewScores, score_review

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "review_scoring.json").read_text())
SEVERITIES = ("critical", "high", "medium", "low")


def scored(case: dict[str, Any]) -> ReviewScores:
    # Some worked cases use an id twice, which no artifact may; no score depends on it.
    findings = tuple(map(Finding.model_validate, case["findings"]))
    artifact = Artifact.model_construct(schema_version=1, verdict=case["verdict"], findings=findings)
    return score_review(artifact, [Label.model_validate(label) for label in case["labels"]])


class TestWorkedCases:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
    def test_scores(self, case: dict[str, Any]) -> None:
        """Every worked case gives its numbers."""
        assert scored(case).model_dump() == case["expected"]

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
    def test_order_and_ids(self, case: dict[str, Any]) -> None:
        """Neither the order of the lists nor the ids matter."""
        findings = [f | {"id": f"z{number}"} for number, f in enumerate(reversed(case["findings"]))]
        labels = [label | {"id": f"a{number}"} for number, label in enumerate(reversed(case["labels"]))]
        assert scored(case | {"findings": findings, "labels": labels}).model_dump() == case["expected"]


def finding(number: int, severity: str, line: int, span: int, category: str) -> Finding:
    return Finding(
        id=f"f{number}", severity=severity, path="a.py", line=line, end_line=line + span, category=category,  # type: ignore[arg-type]
        scenario="s", evidence="e", recommendation="r", blocking=False,
    )  # fmt: skip


def label(number: int, severity: str, line: int, span: int, category: str) -> Label:
    return Label(id=f"l{number}", severity=severity, path="a.py", line_start=line, line_end=line + span,
                 category=category)  # type: ignore[arg-type]  # fmt: skip


parts = st.tuples(st.sampled_from(SEVERITIES), st.integers(1, 20), st.integers(0, 4), st.sampled_from(["x", "X", "y"]))


def worth(pairs: tuple[Pair, ...] | list[Pair]) -> tuple[int, ...]:
    """The criteria of an assignment, in their order; the greatest is the best."""
    return (
        len(pairs),
        sum(pair.credit for pair in pairs),
        -sum(pair.over for pair in pairs),
        sum(pair.both_blocking for pair in pairs),
        sum(pair.same_severity for pair in pairs),
        sum(pair.same_category for pair in pairs),
        -sum(pair.distance for pair in pairs),
    )


class TestMatching:
    @settings(max_examples=150, deadline=None)
    @given(st.lists(parts, max_size=4), st.lists(parts, max_size=4))
    def test_best_of_all(self, found: list[Any], wanted: list[Any]) -> None:
        """No other assignment is better, by trying all of them."""
        findings = [finding(number, *part) for number, part in enumerate(found)]
        labels = [label(number, *part) for number, part in enumerate(wanted)]
        places: list[Label | None] = [*labels, *[None] * len(findings)]
        every = (
            [Pair(f, place) for f, place in zip(findings, order, strict=False) if place and is_eligible(f, place)]
            for order in permutations(places, len(findings))
        )
        assert worth(match(findings, labels)) == max(map(worth, every), default=worth([]))

    @pytest.mark.parametrize(
        ("lines", "span", "eligible"),
        [((10, 10), 0, True), ((14, 14), 0, False), ((13, 13), 0, True), ((7, 7), 0, True), ((6, 6), 0, False),
         ((1, 50), 0, True), ((1, 51), 0, False), ((1, 60), 29, True), ((1, 61), 29, False)],
    )  # fmt: skip
    def test_eligible(self, lines: tuple[int, int], span: int, eligible: bool) -> None:
        """Lines are widened by three; what spans more than fifty, or twice the label, is not localised."""
        one = finding(0, "high", lines[0], lines[1] - lines[0], "x")
        assert is_eligible(one, label(0, "high", 10, span, "x")) == eligible

    def test_as_dense_as_can_be(self) -> None:
        """A hundred findings that all could speak of a hundred labels are matched exactly."""
        findings = [finding(n, SEVERITIES[n % 4], 10, n % 3, "x" if n % 5 else "y") for n in range(100)]
        labels = [label(n, SEVERITIES[(n * 7) % 4], 10 + n % 4, 0, "x" if n % 3 else "y") for n in range(100)]
        pairs = match(findings, labels)
        assert len(pairs) == 100
        assert worth(match(findings[::-1], labels[::-1])) == worth(pairs)


class TestExact:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 7), st.integers(1, 7), st.randoms(use_true_random=False))
    def test_as_scipy(self, rows: int, columns: int, random: Any) -> None:
        """On weights that floating point holds, the exact route is worth what scipy's is."""
        table = np.array([[random.randrange(50) for _ in range(columns)] for _ in range(rows)], dtype=np.int64)
        ours, theirs = best_assignment(table), linear_sum_assignment(table, maximize=True)
        assert len(set(ours[0])) == len(set(ours[1])) == min(rows, columns)
        assert table[ours].sum() == table[theirs].sum()

    def test_beyond_floats(self) -> None:
        """A difference of one beyond 2^53 decides."""
        big = 1 << 55
        table = np.array([[big, big + 1], [big, big]], dtype=np.int64)
        assert sorted(zip(*best_assignment(table), strict=True)) == [(0, 1), (1, 0)]
