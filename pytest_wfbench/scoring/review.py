"""The scores of one review against its labels (scoring version 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_wfbench.scoring.artifact import WEIGHTS, Artifact, Strict, Verdict, is_blocking
from pytest_wfbench.scoring.labels import Label

if TYPE_CHECKING:
    from pytest_wfbench.scoring.matching import Pair

SCORING_VERSION = 2
DECIMALS = 6


class ReviewScores(Strict):
    """What a review is worth; shares lie in 0..1, none where they are undefined."""

    true_positives: int
    false_positives: int
    false_negatives: int
    precision: float | None
    recall: float | None
    f1: float | None
    weighted_precision: float | None
    weighted_recall: float | None
    weighted_f1: float | None
    blocker_recall: float | None
    severity_accuracy: float | None
    category_accuracy: float | None
    verdict_correct: bool
    clean_control: bool
    clean_pass: bool

    @property
    def perfect(self) -> bool:
        """Whether everything was found, nothing else, and the verdict is right."""
        return self.false_positives == self.false_negatives == 0 and self.verdict_correct


def score_review(artifact: Artifact, labels: Sequence[Label]) -> ReviewScores:
    """Score a review; neither ids nor the order of the lists matter."""
    # scipy costs half a second, which a sweep without reviews has no use for.
    from pytest_wfbench.scoring.matching import match

    pairs = match(artifact.findings, labels)
    credit, over = sum(pair.credit for pair in pairs), sum(pair.over for pair in pairs)
    rated = sum(WEIGHTS[finding.severity] for finding in artifact.findings)
    stray = rated - sum(WEIGHTS[pair.finding.severity] for pair in pairs)
    precision, recall = _share(len(pairs), len(artifact.findings)), _share(len(pairs), len(labels))
    weighted_precision = _share(credit, credit + over + stray)
    weighted_recall = _share(credit, sum(WEIGHTS[label.severity] for label in labels))
    return ReviewScores(
        true_positives=len(pairs),
        false_positives=len(artifact.findings) - len(pairs),
        false_negatives=len(labels) - len(pairs),
        precision=_rounded(precision),
        recall=_rounded(recall),
        f1=_rounded(_mean(precision, recall, bool(labels))),
        weighted_precision=_rounded(weighted_precision),
        weighted_recall=_rounded(weighted_recall),
        weighted_f1=_rounded(_mean(weighted_precision, weighted_recall, bool(labels))),
        blocker_recall=_rounded(_blocker_recall(pairs, labels)),
        severity_accuracy=_rounded(_share(sum(pair.same_severity for pair in pairs), len(pairs))),
        category_accuracy=_rounded(_share(sum(pair.same_category for pair in pairs), len(pairs))),
        verdict_correct=artifact.verdict == right_verdict(labels),
        clean_control=not labels,
        clean_pass=not labels and not artifact.findings and artifact.verdict == "approve",
    )


def right_verdict(labels: Sequence[Label]) -> Verdict:
    """Return the verdict that the labels ask for."""
    if not labels:
        return "approve"
    return "request_changes" if any(is_blocking(label.severity) for label in labels) else "comment"


def _blocker_recall(pairs: Sequence[Pair], labels: Sequence[Label]) -> float | None:
    blocking = sum(is_blocking(label.severity) for label in labels)
    return _share(sum(pair.both_blocking for pair in pairs), blocking)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(precision: float | None, recall: float | None, labelled: bool) -> float | None:
    """The harmonic mean: 0 where there are labels and nothing of them was found, none without labels."""
    if not labelled:
        return None
    if not precision or not recall:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)
