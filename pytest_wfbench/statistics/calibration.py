"""How far a judge says what people say of the same answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


class OneClass(ValueError):
    """All labels say the same, so agreement by chance cannot be told from any other."""


@dataclass(frozen=True)
class Calibration:
    """Counts of answers: ``both_pass``, ``both_fail``, and those where only the judge, or only people, say pass."""

    both_pass: int
    both_fail: int
    judge_alone: int
    people_alone: int

    @property
    def answers(self) -> int:
        """How many were judged."""
        return self.both_pass + self.both_fail + self.judge_alone + self.people_alone

    @property
    def agreement(self) -> float:
        """The share on which both say the same."""
        return (self.both_pass + self.both_fail) / self.answers

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond what chance would give; 1 is perfect, 0 is chance."""
        people, judge = self.both_pass + self.people_alone, self.both_pass + self.judge_alone
        total = self.answers
        chance = (people * judge + (total - people) * (total - judge)) / total**2
        return (self.agreement - chance) / (1 - chance)


def calibrate(pairs: Iterable[tuple[bool, bool]]) -> Calibration:
    """Count (label, verdict) pairs.

    Raises:
        OneClass: unless labels of both kinds are there.
    """
    counts = Counter(pairs)
    labels = {label for label, _ in counts}
    if len(labels) < 2:
        told = "there is no label" if not labels else f"every label says {'pass' if labels.pop() else 'fail'}"
        raise OneClass(told)
    return Calibration(counts[True, True], counts[False, False], counts[False, True], counts[True, False])
