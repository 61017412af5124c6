"""Inference against published and independently computed values."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_wfbench.statistics.inference import (
    detectable_effect,
    holm,
    judge_difference,
    least_tasks,
    lower_bound,
    mean_interval,
    pass_at_k,
    pass_hat_k,
    share_interval,
    sign_flip_p,
)

# Darwin's fifteen pairs of maize (eighths of an inch), on which Fisher worked the test of flipped signs by hand.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


class TestSignFlips:
    def test_darwin(self) -> None:
        """Fisher (The Design of Experiments, section 21) counts 863 of 32,768 sums as large: one-sided 2.634 %."""
        whole = sum(DARWIN)
        as_large = sum(
            sum(sign * abs(value) for sign, value in zip(signs, DARWIN, strict=True)) >= whole
            for signs in product((1, -1), repeat=15)
        )
        assert as_large == 863
        sampled = sign_flip_p(DARWIN, "greater")
        assert sampled == pytest.approx(863 / 32768, abs=0.008)

    @pytest.mark.parametrize("count", [1, 2, 5, 9])
    def test_all_alike(self, count: int) -> None:
        """Where all tasks say the same, one of 2^n assignments is as large."""
        assert sign_flip_p([1.0] * count, "greater") == pytest.approx(2.0**-count)

    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.integers(-9, 9), min_size=1, max_size=7))
    def test_by_counting(self, values: list[int]) -> None:
        """The exact test counts the assignments that are as large."""
        sums = [
            sum(sign * value for sign, value in zip(signs, values, strict=True))
            for signs in product((1, -1), repeat=len(values))
        ]
        expected = sum(total >= sum(values) for total in sums) / len(sums)
        assert sign_flip_p([float(v) for v in values], "greater") == pytest.approx(expected if any(values) else 1.0)

    def test_nothing(self) -> None:
        """Without a task there is no p-value; without a difference it is 1."""
        assert sign_flip_p([]) is None
        assert sign_flip_p([0.0, 0.0]) == 1.0


class TestIntervals:
    def test_as_the_t_interval(self) -> None:
        """On well-behaved data it is close to Student's."""
        data = np.random.default_rng(7).normal(3.0, 2.0, 60)
        found = mean_interval(list(data), 0.95)
        student = stats.ttest_1samp(data, 0.0).confidence_interval(0.95)
        assert found is not None
        assert (found.low, found.high) == pytest.approx((student.low, student.high), abs=0.12)
        bound = lower_bound(list(data), 0.95)
        assert bound == pytest.approx(stats.ttest_1samp(data, 0.0, alternative="greater").confidence_interval(0.95).low,
                                      abs=0.12)  # fmt: skip

    def test_too_few(self) -> None:
        """Fewer than eight tasks have no interval."""
        assert mean_interval([1.0] * 7, 0.95) is None
        assert lower_bound([1.0] * 7, 0.95) is None

    def test_without_spread(self) -> None:
        """A sample without spread has its point as interval."""
        assert mean_interval([2.0] * 8, 0.95) == (2.0, 2.0, 0.95)

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.floats(-100, 100), min_size=8, max_size=12), st.randoms(use_true_random=False))
    def test_order(self, values: list[float], random: object) -> None:
        """The order of tasks changes nothing, and the interval holds the mean."""
        shuffled = list(values)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        found = mean_interval(values, 0.95)
        assert found == mean_interval(shuffled, 0.95)
        assert found is not None
        assert found.low <= found.high
        assert min(values) - 1e-9 <= found.low
        assert found.high <= max(values) + 1e-9


class TestWords:
    @pytest.mark.parametrize(
        ("differences", "word"),
        [
            ([9.0, 10, 11, 9, 10, 11, 9, 10], "IMPROVEMENT"),
            ([-9.0, -10, -11, -9, -10, -11, -9, -10], "REGRESSION"),
            ([0.5, -0.5] * 6, "EQUIVALENT"),
            ([30.0, -30] * 6, "INCONCLUSIVE"),
            ([0.0] * 8, "EQUIVALENT"),
            ([10.0] * 5, "INCONCLUSIVE"),
            ([10.0] * 6, "IMPROVEMENT"),
            ([-10.0] * 6, "REGRESSION"),
            ([0.0] * 6, "INCONCLUSIVE"),
            ([], "INCONCLUSIVE"),
        ],
    )
    def test_each(self, differences: list[float], word: str) -> None:
        """From eight tasks on the interval decides, below that the permutation test; five can prove nothing."""
        assert judge_difference(differences, 5.0, 0.95) == word

    def test_shared_chance(self) -> None:
        """An adjusted p-value takes the place of the test's own."""
        assert judge_difference([10.0] * 6, 5.0, 0.95, p=0.06) == "INCONCLUSIVE"


class TestPower:
    @pytest.mark.parametrize("count", [6, 12, 30])
    def test_by_simulation(self, count: int) -> None:
        """The t-test shows an effect of that size in about 80 % of samples."""
        random = np.random.default_rng(1)
        spread = [float(value) for value in stats.norm.ppf((np.arange(count) + 0.5) / count)]
        effect = detectable_effect(spread, 0.95)
        assert effect is not None
        samples = random.normal(effect, np.std(spread, ddof=1), (4000, count))
        shown = np.mean(stats.ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05)
        assert shown == pytest.approx(0.8, abs=0.03)

    def test_edges(self) -> None:
        """One task shows nothing; without spread everything shows."""
        assert detectable_effect([1.0], 0.95) is None
        assert detectable_effect([1.0, 1.0], 0.95) == 0.0

    @pytest.mark.parametrize(("level", "count"), [(0.95, 5), (0.9, 4), (0.5, 1), (0.99, 7), (0.875, 3)])
    def test_least_tasks(self, level: float, count: int) -> None:
        """It is the first number of tasks whose 2^-n reaches the level."""
        assert least_tasks(level) == count
        assert 2.0**-count <= 1 - level + 1e-12 < 2.0 ** -(count - 1) + 1e-9


class TestShares:
    def test_published(self) -> None:
        """Chen et al. (2021): with 3 runs of which 1 passed, pass@1 is 1/3 and pass@3 is 1."""
        assert (pass_at_k(3, 1, 1), pass_at_k(3, 1, 3)) == (pytest.approx(1 / 3), 1.0)
        assert (pass_hat_k(3, 2, 2), pass_hat_k(3, 3, 3), pass_hat_k(3, 2, 3)) == (pytest.approx(1 / 3), 1.0, 0.0)
        assert pass_at_k(3, 1, 4) is None
        assert pass_hat_k(0, 0, 1) is None

    @given(st.integers(1, 12), st.data())
    def test_by_counting(self, runs: int, data: st.DataObject) -> None:
        """Both are shares of all ways to draw k of the runs."""
        passed, k = data.draw(st.integers(0, runs)), data.draw(st.integers(1, runs))
        none = math.comb(runs - passed, k) / math.comb(runs, k)
        assert pass_at_k(runs, passed, k) == pytest.approx(1 - none)
        assert pass_hat_k(runs, passed, k) == pytest.approx(math.comb(passed, k) / math.comb(runs, k))

    def test_wilson(self) -> None:
        """Wilson's interval of 1 in 10, as in Newcombe (1998): 0.0179 to 0.4042."""
        found = share_interval(1, 10)
        assert found is not None
        assert (found.low, found.high) == pytest.approx((0.0179, 0.4042), abs=1e-4)
        assert share_interval(0, 0) is None


class TestHolm:
    def test_worked(self) -> None:
        """The steps of the method: 0.01, 0.02, 0.03 become 0.03, 0.04, 0.04; unknown stays so."""
        assert holm([0.03, None, 0.01, 0.02]) == [pytest.approx(0.04), None, pytest.approx(0.03), pytest.approx(0.04)]

    @given(st.lists(st.floats(0, 1), max_size=6))
    def test_never_smaller(self, values: list[float]) -> None:
        """No p-value gets smaller, none exceeds 1, and their order stays."""
        found = [value for value in holm(values) if value is not None]
        assert all(before - 1e-12 <= after <= 1 for before, after in zip(values, found, strict=True))
