"""What a handful of tasks can say: intervals, tests and detectable effects for differences task by task (scipy)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from pytest_wfbench.statistics.uncertain import Word

Alternative = Literal["two-sided", "greater"]

FEWEST = 8
DRAWS = 4000
SEED = 20_260_101
EXACT = 1 << 14
POWER = 0.8
_LARGEST_SHIFT = 200.0
_AT_ONCE = 1 << 20


class Interval(NamedTuple):
    """Bounds of a mean at a confidence level."""

    low: float
    high: float
    level: float


def mean(differences: Sequence[float]) -> float:
    """Return the mean over tasks, added exactly so that their order does not matter."""
    return math.fsum(differences) / len(differences)


def mean_interval(differences: Sequence[float], level: float) -> Interval | None:
    """Return a BCa bootstrap interval of the mean over tasks, seeded; none with fewer than ``FEWEST``.

    A sample without spread has its point as interval.
    """
    return _interval(differences, level, "two-sided")


def lower_bound(differences: Sequence[float], level: float) -> float | None:
    """Return the one-sided lower bound of the mean at a level; none with fewer than ``FEWEST`` tasks."""
    interval = _interval(differences, level, "greater")
    return None if interval is None else interval.low


def _interval(differences: Sequence[float], level: float, alternative: Alternative) -> Interval | None:
    if len(differences) < FEWEST:
        return None
    data = _ordered(differences)
    if np.ptp(data) == 0:
        return Interval(float(data[0]), float(data[0]), level)
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = stats.bootstrap(
                (data,), np.mean, n_resamples=DRAWS, confidence_level=level, alternative=alternative, method=method,
                rng=np.random.default_rng(SEED), batch=_batch(len(data)),
            ).confidence_interval  # fmt: skip
        if not (math.isnan(found.low) or math.isnan(found.high)):
            return Interval(float(found.low), float(found.high), level)
    return None


def sign_flip_p(differences: Sequence[float], alternative: Alternative = "two-sided") -> float | None:
    """Return the p-value of a sign-flip permutation test of the mean over tasks; none without a task.

    Exact up to ``EXACT`` assignments of signs, a seeded sample beyond.
    """
    if not differences:
        return None
    data = _ordered(differences)
    if not data.any():
        return 1.0
    if len(data) == 1:
        # Two assignments of signs, of which scipy takes no account.
        return 0.5 if alternative == "greater" and data[0] > 0 else 1.0
    exact = 2 ** len(data) <= EXACT
    found = stats.permutation_test(
        (data,), np.mean, permutation_type="samples", alternative=alternative, vectorized=True,
        n_resamples=np.inf if exact else DRAWS, rng=np.random.default_rng(SEED), batch=_batch(len(data)),
    )  # fmt: skip
    return float(found.pvalue)


def judge_difference(differences: Sequence[float], gain: float, level: float, p: float | None = None) -> Word:
    """Return which of the four words the differences deserve; above 0 is better.

    With ``FEWEST`` tasks the interval decides, and equivalence is an interval inside ± ``gain``. With fewer only the
    permutation test speaks; ``p`` takes its place where several metrics share the chance of error.
    """
    interval = mean_interval(differences, level)
    if interval is not None:
        if interval.low > 0:
            return "IMPROVEMENT"
        if interval.high < 0:
            return "REGRESSION"
        return "EQUIVALENT" if -gain < interval.low and interval.high < gain else "INCONCLUSIVE"
    chance = sign_flip_p(differences) if p is None else p
    if chance is None or chance > 1 - level:
        return "INCONCLUSIVE"
    return "IMPROVEMENT" if math.fsum(differences) > 0 else "REGRESSION"


def detectable_effect(differences: Sequence[float], level: float) -> float | None:
    """Return the smallest mean difference that as many tasks of this spread show with 80 % power (paired t-test).

    None with fewer than two tasks.
    """
    count = len(differences)
    if count < 2:
        return None
    spread = float(np.std(_ordered(differences), ddof=1))
    if spread == 0:
        return 0.0
    critical = stats.t.ppf(1 - (1 - level) / 2, count - 1)

    def lacking(shift: float) -> float:
        return float(stats.nct.sf(critical, count - 1, shift)) - POWER

    if lacking(_LARGEST_SHIFT) < 0:
        return None
    shift = optimize.brentq(lacking, 0.0, _LARGEST_SHIFT)
    return float(shift) * spread / math.sqrt(count)


def least_tasks(level: float) -> int:
    """Return how many tasks the one-sided permutation test needs before it can reach a level at all."""
    return math.ceil(math.log2(1 / (1 - level)) - 1e-9)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for their number (Holm); what is unknown stays so, and counts for nothing."""
    known = sorted((value, index) for index, value in enumerate(values) if value is not None)
    adjusted: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (value, index) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted


def pass_at_k(runs: int, passed: int, k: int) -> float | None:
    """Return the unbiased estimate that at least one of ``k`` runs passes; none with fewer runs than ``k``."""
    if not 1 <= k <= runs:
        return None
    return 1.0 - float(special.comb(runs - passed, k, exact=True)) / float(special.comb(runs, k, exact=True))


def pass_hat_k(runs: int, passed: int, k: int) -> float | None:
    """Return the unbiased estimate that all of ``k`` runs pass; none with fewer runs than ``k``."""
    if not 1 <= k <= runs:
        return None
    return float(special.comb(passed, k, exact=True)) / float(special.comb(runs, k, exact=True))


def share_interval(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Return Wilson's interval of a share; none without a trial."""
    if not trials:
        return None
    found = stats.binomtest(successes, trials).proportion_ci(level, method="wilson")
    return Interval(float(found.low), float(found.high), level)


def _batch(tasks: int) -> int:
    """How many resamples are drawn at once, so that memory stays bounded whatever the number of tasks."""
    return max(1, _AT_ONCE // tasks)


def _ordered(differences: Sequence[float]) -> NDArray[np.float64]:
    """The order of tasks must not decide which resamples are drawn."""
    return np.sort(np.asarray(differences, dtype=np.float64))
