"""Who judged, in sentences: what makes a judge doubtful, how far its votes agree, and what it cost."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.evidence.row import Judgement, Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.matrix.subject import REPLAY
from pytest_wfbench.report.words import dollars, plural

# Model families by how their members are called, behind whatever gateway.
FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile(rf"(?:\A|[/.:_@-])(?:{names})", re.IGNORECASE))
    for family, names in (
        ("Claude", r"claude"),
        ("GPT", r"gpt-?\d|gpt-oss|chatgpt|codex|o[134](?:-|\Z)"),
        ("Gemini", r"gemini|gemma"),
        ("Llama", r"llama|meta-llama"),
        ("Mistral", r"mi[sx]tral|codestral|devstral|magistral|ministral"),
        ("Qwen", r"qwen|qwq"),
        ("DeepSeek", r"deepseek"),
        ("GLM", r"glm"),
        ("Kimi", r"kimi|moonshot"),
        ("Grok", r"grok"),
        ("MiniMax", r"minimax"),
        ("Nova", r"nova-"),
        ("Command", r"command-"),
    )
)
# Providers that make models of their own: two models there need not share a gateway's fate or its faults.
MAKERS = frozenset({"anthropic", "openai", "codex"})
# Where a bare name leads.
OWN = "opencode-go"


def family_of(model: str) -> str | None:
    """Return the family of a model's name, none for one that is not known."""
    return next((family for family, pattern in FAMILIES if pattern.search(model)), None)


def gateway_of(model: str) -> str | None:
    """Return the gateway that a requested model is reached through, none for a maker's own and for a cassette."""
    if not model or model.startswith(REPLAY):
        return None
    provider = model.partition("/")[0] if "/" in model else OWN
    return None if provider in MAKERS else provider


def doubts(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield why a judge may not be an independent one."""
    judged = [row for row in rows.rows if row.judge]
    own = {family for row in judged for family in _families((row.judge.model,) if row.judge else ())}
    answered = {family for row in judged for family in _families(row.models_answered or ())}
    for family in sorted(own & answered):
        yield f"Judge and subject are of one model family ({family}): a model is kind to its like."
    asked = gateway_of(sweep.options.judge_model or "")
    if judged and asked and asked in {gateway_of(subject.model or "") for subject in sweep.subjects}:
        yield f"Judge and subject are reached through one gateway ({asked}): its faults are in both."


def _families(models: Iterable[str | None]) -> set[str]:
    return {family for model in models if model and (family := family_of(model))}


def votes(rows: Rows, sweep: Sweep) -> Iterator[str]:
    """Yield how far the votes agree, where there were several, and what judging cost."""
    judgements = [row.judge for row in rows.rows if row.judge]
    split = [row for row in rows.rows if row.judge and row.judge.agreement is not None and row.judge.agreement < 1]
    several = [j.agreement for j in judgements if j.votes > 1 and j.agreement is not None]
    if several:
        names = _named(split)
        apart = f" They were split on {names}." if names else ""
        yield f"The judge's votes agree by {100 * math.fsum(several) / len(several):.0f} % on average.{apart}"
    if judgements:
        yield f"{_requests(judgements)} of the judge, which no arm's numbers count, cost {_cost(judgements)}."


def _named(rows: list[Row]) -> str:
    names = list(dict.fromkeys(row.task for row in rows))
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _requests(judgements: list[Judgement]) -> str:
    return plural(sum(judgement.requests or 0 for judgement in judgements), "request")


def _cost(judgements: list[Judgement]) -> str:
    costs = [judgement.cost_usd for judgement in judgements]
    known = [cost for cost in costs if cost is not None]
    return dollars(math.fsum(known)) if len(known) == len(costs) else "an unknown sum"
