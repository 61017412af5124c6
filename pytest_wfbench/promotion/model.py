"""``promotion.json``, schema 6: decisions with all that they are bound to."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_wfbench.evidence.manifest import DependencyBinding, Origin, RunStatus, TaskBinding
from pytest_wfbench.evidence.row import Block, PluginBinding
from pytest_wfbench.promotion.rules import Decided, PolicyOptions
from pytest_wfbench.statistics.uncertain import Uncertainty

SCHEMA_VERSION = 6


class SideNumbers(Block):
    """One arm on one task: run counts, and the median of the decision's metric, none where unknown."""

    runs: int
    valid: int
    resolved: int
    metric: float | None


class TaskNumbers(Block):
    """One task of a decision.

    ``improvement_pct`` is positive where the candidate needs less, ``gain`` where it scores more; one of them is none.
    """

    task: str
    variation: int
    gated: bool
    incumbent: SideNumbers
    candidate: SideNumbers
    improvement_pct: float | None
    gain: float | None


class Decision(Block):
    """One candidate arm against its incumbent, for one subject and one policy."""

    incumbent_arm: str | None
    candidate_arm: str
    subject: str | None
    policy: str | None
    decision: Decided
    metric: str | None
    reasons: tuple[str, ...]
    tasks: tuple[TaskNumbers, ...] = ()
    gated_tasks: tuple[str, ...] = ()
    ungated_tasks: tuple[str, ...] = ()
    uncertainty: Uncertainty | None = None


class ArmPolicy(Block):
    """The policy a candidate arm was weighed by, and its thresholds."""

    policy: str
    options: PolicyOptions


class Promotion(Block):
    """Everything ``wfbench apply`` needs. ``decision`` is the overlay's: promote only if every decision promotes.

    ``subject`` is the one subject, none where there are several; times are UTC, ISO 8601.
    """

    schema_version: Literal[6] = 6
    generated_at: str
    evidence_expires_at: str | None
    run_status: RunStatus
    decision: Decided
    subject: str | None
    subjects: tuple[str, ...]
    proposer_model: str | None
    candidate_origin: Origin | None
    candidate_overlay_digest: str | None
    target_base_digests: dict[str, str] = Field(default_factory=dict)
    required_candidate_arms: tuple[str, ...] = ()
    selected_tasks: tuple[TaskBinding, ...] = ()
    dependencies: tuple[DependencyBinding, ...] = ()
    plugin: PluginBinding | None = None
    policy: dict[str, ArmPolicy] = Field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()

    def to_json(self) -> str:
        """Return the file's text: indented JSON, keys in the order of the schema."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"
