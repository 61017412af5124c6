"""What a judge says, held to its form: anything else is no verdict at all."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NoReturn

KEYS = frozenset({"pass", "score", "reason"})
# A score from here on is a pass, and a pass has such a score.
ENOUGH = 0.5
LONGEST = 64 << 10
FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL)
PLACEHOLDERS = frozenset(
    {
        "reason", "the reason", "your reason", "your reason here", "reason here", "string", "str", "text",
        "none", "null", "na", "n a", "not applicable", "tbd", "todo", "placeholder", "explanation", "why", "empty",
        "unknown", "xxx",
        "one sentence", "lorem ipsum", "pass", "fail", "true", "false",
    }
)  # fmt: skip


class InvalidVerdict(ValueError):
    """What a judge said is no verdict; the message says why."""


@dataclass(frozen=True)
class Verdict:
    """One valid verdict. ``score`` is 0..1."""

    passed: bool
    score: float
    reason: str


@dataclass(frozen=True)
class Majority:
    """What most of an odd number of verdicts say: ``agreement`` is their share, ``score`` the median of all."""

    passed: bool
    score: float
    reason: str
    agreement: float


def read_verdict(text: str) -> Verdict:
    """Read ``{"pass": bool, "score": 0..1, "reason": str}`` and nothing else, in a fence of its own at most.

    Raises:
        InvalidVerdict: for anything else, and for a verdict that contradicts itself or gives no reason.
    """
    value = _loaded(text.strip())
    if not isinstance(value, dict) or value.keys() != KEYS:
        raise InvalidVerdict("it is no object of pass, score and reason")
    passed, score, reason = value["pass"], value["score"], value["reason"]
    if not isinstance(passed, bool):
        raise InvalidVerdict("pass is neither true nor false")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
        raise InvalidVerdict("score is no number from 0 to 1")
    if passed is not (score >= ENOUGH):
        raise InvalidVerdict(f"pass {json.dumps(passed)} contradicts a score of {score:g}")
    if not isinstance(reason, str) or _says_nothing(reason):
        raise InvalidVerdict("it gives no reason")
    return Verdict(passed, float(score), " ".join(reason.split()))


def _loaded(text: str) -> Any:
    if len(text) > LONGEST:
        raise InvalidVerdict("it is too long")
    fenced = FENCE.match(text)
    try:
        return json.loads(
            fenced[1] if fenced else text, parse_constant=_refuse, object_pairs_hook=_once, parse_int=_whole
        )
    except InvalidVerdict:
        raise
    except (ValueError, RecursionError):
        raise InvalidVerdict("it is not JSON") from None


def _refuse(name: str) -> NoReturn:
    raise InvalidVerdict(f"{name} is no number")


def _whole(text: str) -> int:
    return int(text[:20])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise InvalidVerdict("a key stands in it twice")
    return dict(pairs)


def _says_nothing(reason: str) -> bool:
    words = " ".join(re.findall(r"\w+", reason.lower().replace("_", " ")))
    return not any(letter.isalpha() for letter in words) or words in PLACEHOLDERS


def majority(verdicts: Sequence[Verdict]) -> Majority:
    """Return what most of an odd number of verdicts say; the reason is that of the most decided of them."""
    votes = Counter(verdict.passed for verdict in verdicts)
    passed = votes[True] > votes[False]
    same = [verdict for verdict in verdicts if verdict.passed is passed]
    decided = max(same, key=lambda verdict: verdict.score if passed else -verdict.score)
    score = median(verdict.score for verdict in verdicts)
    return Majority(passed, score, decided.reason, len(same) / len(verdicts))
