"""What a promotion.json says, in sentences. Schema 5 is read for that alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_wfbench.evidence.row import Block
from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.matrix.problems import printable
from pytest_wfbench.promotion.gate import overall
from pytest_wfbench.promotion.model import Decision, Promotion
from pytest_wfbench.promotion.rules import Decided

LIMIT = 64 << 20
OLD = (
    "This is schema 5, which has one policy for all arms and does not say how the sweep ended: it can be read but never"
    " applied. Run the sweep again to have decisions of schema 6."
)


class BadPromotion(Exception):
    """A file that is no promotion.json; the message is one line for the user."""


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class OldDecision(_Loose):
    """A decision of schema 5."""

    incumbent_arm: str | None = None
    candidate_arm: str
    decision: Decided
    metric: str | None = None
    reasons: tuple[str, ...] = ()


class OldPolicy(_Loose):
    """The one policy of schema 5."""

    metric: str | None = None
    min_runs: int | None = None
    min_improvement_pct: float | None = None
    max_task_regression_pct: float | None = None


class OldTask(_Loose):
    """A task of schema 5."""

    id: str


class OldPromotion(_Loose):
    """promotion.json of schema 5, as far as it is told."""

    schema_version: Literal[5]
    generated_at: str
    evidence_expires_at: str | None = None
    subject: str | None = None
    candidate_origin: str | None = None
    candidate_overlay_digest: str | None = None
    required_candidate_arms: tuple[str, ...] = ()
    selected_tasks: tuple[OldTask, ...] = ()
    policy: OldPolicy = OldPolicy()
    decisions: tuple[OldDecision, ...] = ()


class _Version(_Loose):
    schema_version: int = Field(strict=True)


def read_promotion(path: Path) -> Promotion | OldPromotion:
    """Read a promotion.json of schema 6 or 5.

    Raises:
        BadPromotion: for anything else.
    """
    try:
        data = read_untrusted(path.parent, path.name, LIMIT)
        version = _Version.model_validate_json(data).schema_version
        if version not in READERS:
            raise BadPromotion(f"{path}: schema {version}, this version reads 5 and 6. Use the wfbench that wrote it")
        return READERS[version].model_validate_json(data)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "file"
        raise BadPromotion(
            f"{path}: no promotion.json: {printable(where)}: {fault['msg']}. Make it again: wfbench gate"
        ) from error
    except (UnsafeFile, OSError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise BadPromotion(f"{path}: cannot be read: {told}. Name a promotion.json") from error


READERS: Mapping[int, type[Promotion] | type[OldPromotion]] = MappingProxyType({5: OldPromotion, 6: Promotion})


def explain(found: Promotion | OldPromotion) -> Iterator[str]:
    """Yield sentences: what was compared, what was decided and why, and whether it can be applied."""
    yield f"Decisions of {found.generated_at}, schema {found.schema_version}, on {_many(found.selected_tasks, 'task')}."
    if found.subject:
        yield f"Subject: {found.subject}."
    if found.candidate_overlay_digest:
        origin = found.candidate_origin or "an unknown origin"
        yield f"The candidate is the overlay {found.candidate_overlay_digest}, of {origin}."
    for decision in found.decisions:
        yield from _decision(decision)
    if found.evidence_expires_at:
        yield f"The evidence expires at {found.evidence_expires_at}."
    yield OLD if isinstance(found, OldPromotion) else _whole(found)


def _decision(decision: Decision | OldDecision) -> Iterator[str]:
    against = f" against {decision.incumbent_arm}" if decision.incumbent_arm else ""
    by = f" by {decision.metric}" if decision.metric else ""
    yield f"{decision.candidate_arm}{against}{by}: {SAID[decision.decision]}."
    for reason in decision.reasons:
        yield f"- {reason[:1].upper()}{reason[1:]}{'' if reason.endswith('.') else '.'}"


SAID: Mapping[Decided, str] = MappingProxyType({
    "promote": "it is promoted",
    "keep_incumbent": "the incumbent is kept",
    "insufficient_evidence": "the evidence is insufficient",
})  # fmt: skip


def _whole(found: Promotion) -> str:
    word = overall(found.decisions)
    return (
        f"The sweep is {found.run_status}; of the overlay as a whole, {SAID[word]}."
        " Whether it can be applied is decided again, from the rows: wfbench apply."
    )


def _many(things: tuple[Block, ...] | tuple[BaseModel, ...], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"
