"""The report's plain words: what happened, who saved what, what the gate says. Unescaped, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_wfbench.report.chance import chance_sentence
from pytest_wfbench.report.savings import Savings
from pytest_wfbench.report.summary import Decided, Report, Spent
from pytest_wfbench.report.versus import comparison, is_worse, tokens_alike
from pytest_wfbench.report.words import count, dollars, plural, seconds, signed

GATE_WORDS = {
    "promote": "is promoted",
    "keep_incumbent": "is not promoted",
    "insufficient_evidence": "cannot be judged on this evidence",
}


def sentences(report: Report) -> tuple[str, ...]:
    """Return the summary of a sweep, most important first."""
    return (
        _cells(report),
        _spending(report.spent),
        *_with_baseline(report),
        *_comparisons(report.savings),
        *(sentence for decision in report.decisions for sentence in _decided(decision)),
    )


def _decided(decision: Decided) -> Iterator[str]:
    yield decision_sentence(decision)
    if chance := chance_sentence(decision.uncertainty):
        yield chance


def _cells(report: Report) -> str:
    counts = report.verdict.counts
    others = ((counts.unusable, "unusable"), (counts.skipped, "skipped"), (counts.absent, "without a result"))
    rest = "".join(f", {number} {word}" for number, word in others if number)
    cells = plural(counts.planned, "cell")
    return f"Of {cells}, {counts.graded} were graded: {counts.passed} passed, {counts.missed} missed{rest}."


def _spending(spent: Spent) -> str:
    wall = f" in {seconds(spent.wall)}" if spent.wall is not None else ""
    return f"The sweep used {spent_tokens(spent)} and {spent_dollars(spent)}{wall}."


def spent_tokens(spent: Spent) -> str:
    """Return all tokens, marked as a lower bound where some are unknown."""
    if spent.tokens is None:
        return "an unknown number of tokens"
    return f"{'' if spent.tokens_whole else '≥ '}{count(spent.tokens)} tokens"


def spent_dollars(spent: Spent) -> str:
    """Return all cost, marked as a lower bound where some is unknown."""
    if spent.cost_usd is None:
        return "an unknown cost"
    return f"{'' if spent.cost_whole else '≥ '}{dollars(spent.cost_usd)}"


def _comparisons(savings: Sequence[Savings]) -> Iterator[str]:
    for entry in savings:
        yield (
            f"{entry.arm} resolved {entry.resolved} of {plural(entry.valid, 'valid run')}"
            f" ({entry.against}: {entry.resolved_against} of {entry.valid_against})"
            f" and {_costs(entry.percents['cost_usd'])} {entry.against}"
            f" (median over {plural(entry.tasks, 'task')})."
        )


def _with_baseline(report: Report) -> Iterator[str]:
    baseline = report.baseline
    if baseline is None:
        return
    compare = comparison(report)
    shared = [summary for summary in report.summaries if compare(summary)]
    worse = [f"{s.key.unit} under {s.key.arm}" for s in shared if is_worse(s, compare(s))]
    tokens = tokens_alike(report, compare)
    change = "" if tokens is None else f", tokens {signed(tokens)}"
    told = f"It is compared with {baseline.kind} {baseline.name} (sweep {baseline.sweep_id})"
    yield f"{told}, which has {len(shared)} of its {plural(len(report.summaries), 'row')}{change}."
    if worse:
        more = f" and {len(worse) - 5} more" if len(worse) > 5 else ""
        yield f"Worse than there: {', '.join(worse[:5])}{more}."


def _costs(percent: float | None) -> str:
    if percent is None:
        return "cost an unknown amount more or less than"
    if not round(percent, 1):
        return "cost as much as"
    return f"cost {abs(percent):.1f} % {'less' if percent > 0 else 'more'} than"


def decision_sentence(decision: Decided) -> str:
    """Return a decision as one sentence with its first reason."""
    of = f" for {decision.subject}" if decision.subject else ""
    reason = decision.reasons[0] if decision.reasons else ""
    return f"{decision.candidate_arm} {GATE_WORDS.get(decision.decision, decision.decision)}{of}: {reason}"
