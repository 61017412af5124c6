"""How sure a decision is: its metrics by inference over tasks, and how often the gate is fooled by chance alone."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_wfbench.promotion.rules import Comparison, Contrast, Policy
from pytest_wfbench.promotion.simulate import SEED, promoted
from pytest_wfbench.statistics.uncertain import Bounds, FalsePromotion, MetricUncertainty, Uncertainty, Word

LEVEL = 0.95
DRAWS = 500
# A simulated sweep takes a fraction of a millisecond a run: beyond this nobody would wait for it without being asked.
MOST_RUNS = 150


def uncertainty_of(policy: Policy, comparison: Comparison) -> Uncertainty:
    """Return how sure a comparison is, whatever was decided. Needs scipy."""
    from pytest_wfbench.statistics import inference

    options = comparison.options
    level = options.confidence or LEVEL
    return Uncertainty(
        level=level,
        binding=options.confidence is not None,
        runs=min((len(side.valid) for pair in comparison.pairs for _, side in comparison.sides(pair)), default=0),
        metrics=_metrics(policy.contrasts(comparison), level),
        false_promotion=_false_promotion(policy, comparison),
        draws=inference.DRAWS,
        seed=inference.SEED,
    )


def _metrics(contrasts: Sequence[Contrast], level: float) -> tuple[MetricUncertainty, ...]:
    """The metric that was asked for was so beforehand and speaks for itself; the others share the chance of error."""
    from pytest_wfbench.statistics.inference import holm, sign_flip_p

    whole = [contrast if None not in contrast.differences else None for contrast in contrasts]
    chances = [sign_flip_p(contrast.known) if contrast else None for contrast in whole]
    adjusted = holm(chances)
    return tuple(
        _metric(contrast, level, p, shared, p if first else shared)
        for contrast, p, shared, first in zip(contrasts, chances, adjusted, _first(contrasts), strict=True)
    )


def _first(contrasts: Sequence[Contrast]) -> tuple[bool, ...]:
    return tuple(index == 0 for index in range(len(contrasts)))


def _metric(
    contrast: Contrast, level: float, p: float | None, p_holm: float | None, deciding: float | None
) -> MetricUncertainty:
    """``deciding`` is the p-value by which the word is judged."""
    from pytest_wfbench.statistics import inference

    tasks, known = len(contrast.differences), contrast.known
    unknown = tasks - len(known)
    if unknown or not tasks:
        remark = f"unknown on {unknown} of {tasks} tasks" if unknown else "no task decides"
        return MetricUncertainty(
            metric=contrast.metric, unit=contrast.unit, word="INCONCLUSIVE", tasks=tasks, remark=remark
        )
    found = inference.mean_interval(known, level)
    reached = tasks >= inference.FEWEST or 2.0 ** (1 - tasks) <= 1 - level + 1e-9
    return MetricUncertainty(
        metric=contrast.metric,
        unit=contrast.unit,
        word=_word(inference.judge_difference(known, contrast.gain, level, deciding), deciding, level),
        tasks=tasks,
        mean=inference.mean(known),
        interval=Bounds(low=found.low, high=found.high, level=level) if found else None,
        p=p,
        p_holm=p_holm,
        detectable=inference.detectable_effect(known, level) if reached else None,
        remark=None if found else _too_few(tasks, level, reached),
    )


def _word(word: Word, p: float | None, level: float) -> Word:
    """An interval that excludes 0 is no claim where the test, adjusted for its company, does not bear it out."""
    claimed = word in ("IMPROVEMENT", "REGRESSION")
    return "INCONCLUSIVE" if claimed and (p is None or p > 1 - level + 1e-9) else word


def _too_few(tasks: int, level: float, reached: bool) -> str:
    from pytest_wfbench.statistics.inference import FEWEST, least_tasks

    least = min(least_tasks(level) + 1, FEWEST)
    more = "" if reached else f", and {least} before anything can be shown at level {level:g}"
    return f"no interval and no equivalence is claimed with {tasks} tasks: {FEWEST} are needed{more}"


def _false_promotion(policy: Policy, comparison: Comparison) -> FalsePromotion:
    from pytest_wfbench.statistics.inference import share_interval

    runs = sum(len(pair.incumbent.valid) for pair in comparison.pairs) * 2
    if runs > MOST_RUNS:
        return FalsePromotion(seed=SEED, remark=f"{runs} runs are many to simulate: run `wfbench power`")
    found = promoted(policy, comparison, DRAWS)
    if not found.ruled:
        return FalsePromotion(seed=SEED, remark="the gate cannot rule on the incumbent's runs, so it promotes nothing")
    interval = share_interval(found.promoted, DRAWS)
    return FalsePromotion(
        rate=found.promoted / DRAWS,
        interval=Bounds(low=interval.low, high=interval.high, level=interval.level) if interval else None,
        promoted=found.promoted,
        draws=DRAWS,
        seed=SEED,
    )
