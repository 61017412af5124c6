"""Whether chance explains a gain as well: what a confidence that was asked for adds to the rules that promote."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_wfbench.promotion.rules import TOLERANCE, Decided, PolicyOptions, shown


def sure(
    decision: Decided, reason: str, what: str, differences: Sequence[float], options: PolicyOptions
) -> tuple[Decided, tuple[str, ...]]:
    """Return a rule's decision and reasons, a promotion only where chance does not explain it at the asked confidence.

    ``differences`` are per task, above 0 where the candidate is better; ``what`` names their mean in the reason. What
    decided comes first: many places tell the first reason alone.
    """
    if decision != "promote" or options.confidence is None:
        return decision, (reason,)
    held, told = _held(what, differences, options.confidence)
    return held, (reason, told) if held == "promote" else (told, reason)


def _held(what: str, differences: Sequence[float], level: float) -> tuple[Decided, str]:
    # scipy takes half a second to import, and only a confidence needs it here.
    from pytest_wfbench.statistics.inference import FEWEST, least_tasks, lower_bound, sign_flip_p

    tasks, asked = len(differences), f"at confidence {level:g}"
    low = lower_bound(differences, level)
    if low is not None:
        above = low > TOLERANCE
        return "promote" if above else "keep_incumbent", (
            f"The lower bound of {what} over {tasks} tasks is {shown(low)} {asked}, above 0 {_was(above)} needed."
        )
    needed = min(least_tasks(level), FEWEST)
    if tasks < needed:
        return "insufficient_evidence", (
            f"{tasks} tasks cannot show {what} {asked}: the least p they allow is {shown(0.5**tasks)},"
            f" at most {shown(1 - level)} is needed; {needed} tasks could."
        )
    p = sign_flip_p(differences, "greater")
    below = p is not None and p <= 1 - level + TOLERANCE
    return "promote" if below else "keep_incumbent", (
        f"The permutation test of {what} over {tasks} tasks gives p = {shown(p)},"
        f" at most {shown(1 - level)} {_was(below)} needed."
    )


def _was(met: bool) -> str:
    return "was" if met else "is"
