"""What a task under an arm is compared with: a baseline that was filed, else another arm of the same sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_wfbench.evidence.baseline import Baseline, Filed
from pytest_wfbench.report.savings import references
from pytest_wfbench.report.summary import Report
from pytest_wfbench.report.words import UNKNOWN, signed
from pytest_wfbench.statistics.aggregate import Key, Number, Summary
from pytest_wfbench.statistics.paired import improvement


@dataclass(frozen=True)
class Reference:
    """The other side: ``resolved`` of ``valid`` runs, the median tokens, who answered and how tokens were counted."""

    valid: int
    resolved: int
    tokens: Number | None
    models: tuple[str, ...]
    accounting: tuple[str, ...]


Compare = Callable[[Summary], Reference | None]


def comparison(report: Report) -> Compare:
    """Return what finds the other side of each summary: all of a sweep is compared with the same."""
    if report.baseline is not None:
        return _with_filed(report.baseline, report.summaries)
    peers = {summary.key: summary for summary in report.summaries}

    def within(summary: Summary) -> Reference | None:
        """The same task under the arm's incumbent, else under the baseline arm."""
        rivals = (peers.get(summary.key._replace(arm=name)) for name in references(summary.key.arm, report.sweep))
        rival = next((rival for rival in rivals if rival), None)
        return _side(rival) if rival else None

    return within


def _with_filed(baseline: Baseline, summaries: Sequence[Summary]) -> Compare:
    """Compare with what is filed of the same task, arm and subject, or of the one subject that each side has."""
    filed: Mapping[Key, Filed] = {Key(e.task, e.variation, e.arm, e.subject): e for e in baseline.entries}
    subjects: dict[bool, set[str]] = defaultdict(set)
    subjects[True].update(key.subject for key in filed)
    subjects[False].update(summary.key.subject for summary in summaries)
    other = next(iter(subjects[True])) if len(subjects[True]) == len(subjects[False]) == 1 else None

    def across(summary: Summary) -> Reference | None:
        found = filed.get(summary.key._replace(subject=other) if other else summary.key)
        digests = {run.row.task_digest for run in summary.runs}
        return _side(found) if found and digests == {found.task_digest} else None

    return across


def _side(of: Summary | Filed) -> Reference:
    return Reference(of.valid, of.resolved, of.tokens, tuple(of.models), tuple(of.accounting))


def is_worse(summary: Summary, reference: Reference | None) -> bool:
    """Whether a smaller share of valid runs passes than on the other side."""
    if reference is None or not reference.valid or not summary.valid:
        return False
    return summary.resolved * reference.valid < reference.resolved * summary.valid


def token_change(summary: Summary, reference: Reference | None) -> str:
    """Return the change of tokens in percent, where both sides were answered and counted alike; else a dash."""
    if reference is None or not summary.models or not summary.accounting:
        return UNKNOWN
    if (summary.models, summary.accounting) != (reference.models, reference.accounting):
        return UNKNOWN
    saved = improvement(reference.tokens, summary.tokens)
    return signed(None if saved is None else -saved)


def tokens_alike(report: Report, compare: Compare) -> float | None:
    """Return by how many percent the tokens of all that can be compared changed; none where nothing can."""
    pairs = [(summary, compare(summary)) for summary in report.summaries]
    alike = [(s.tokens, r.tokens) for s, r in pairs if r and token_change(s, r) != UNKNOWN]
    before = sum(then for _, then in alike if then is not None)
    now = sum(tokens for tokens, _ in alike if tokens is not None)
    return 100.0 * (now - before) / before if before else None
