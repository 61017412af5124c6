"""How sure a comparison is, as a value: written into promotion.json, told in reports. What computes it needs scipy."""

from __future__ import annotations

from typing import Literal

from pytest_wfbench.evidence.row import Block

Word = Literal["IMPROVEMENT", "REGRESSION", "EQUIVALENT", "INCONCLUSIVE"]
Unit = Literal["percent", "weighted_f1"]


class Bounds(Block):
    """Bounds of a mean or a share at a confidence level, 0..1."""

    low: float
    high: float
    level: float


class MetricUncertainty(Block):
    """What the differences of one metric, task by task, say about the candidate; above 0 is better.

    ``mean`` and ``interval`` are in the ``unit``: percent that the candidate needs less, or points of weighted F1 more.
    ``p`` is of the two-sided sign-flip test over tasks, ``p_holm`` the same adjusted for the metrics of this decision.
    ``detectable`` is the smallest mean that as many tasks of this spread show with 80 % power. What cannot be told is
    none, and ``remark`` says why: of all of it, or of the interval.
    """

    metric: str
    unit: Unit
    word: Word
    tasks: int
    mean: float | None = None
    interval: Bounds | None = None
    p: float | None = None
    p_holm: float | None = None
    detectable: float | None = None
    remark: str | None = None


class FalsePromotion(Block):
    """How often the gate promotes a candidate that is the incumbent: of ``draws`` simulated sweeps, seeded.

    None of it is known where ``remark`` says why.
    """

    rate: float | None = None
    interval: Bounds | None = None
    promoted: int | None = None
    draws: int = 0
    seed: int
    remark: str | None = None


class Uncertainty(Block):
    """How sure a decision is at a confidence ``level``: per metric, the asked one first, and of the gate itself.

    ``runs`` is the least number of valid runs of an arm on a task; ``draws`` and ``seed`` are the bootstrap's. With
    ``binding`` a promotion needed the lower bound above 0.
    """

    level: float
    binding: bool
    runs: int
    metrics: tuple[MetricUncertainty, ...]
    false_promotion: FalsePromotion
    draws: int
    seed: int
