"""The row: everything that is known about one attempt of one cell. Unknown is ``None``, never 0."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

Outcome = Literal["pass", "miss", "unusable", "skipped"]

UNUSABLE_KINDS = (
    "session-error", "provider-error", "no-output", "evidence-unverified", "review-artifact-invalid", "judge-error",
    "worker-crash", "gateway-lost", "cancelled", "cleanup-failure", "infra-error",
)  # fmt: skip
MISS_KINDS = (
    "oracle-failed", "verify-failed", "verify-timeout", "oracle-timeout", "session-timeout", "no-work-produced",
    "skill-not-invoked", "skill-changed", "plan-invalid", "review-imperfect", "check-failed", "rubric-missed",
    "budget-exceeded", "limit-memory", "limit-disk", "limit-processes", "limit-output",
)  # fmt: skip
SKIPPED_KINDS = ("expensive", "unsupported", "reused", "outage-stop", "budget-stop", "shard")


class Block(BaseModel):
    """Base of the row and its parts: immutable; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Usage(Block):
    """Tokens, normalised over wire formats; every field is a count or unknown."""

    ordinary_input: int | None = None
    cache_read_input: int | None = None
    cache_write_input: int | None = None
    total_input: int | None = None
    output: int | None = None
    reasoning_output: int | None = None


class Timings(Block):
    """Seconds of each phase; ``overhead`` is all that is not agent, verify or oracle command."""

    queue: float | None = None
    workspace: float | None = None
    setup: float | None = None
    session: float | None = None
    verify: float | None = None
    oracle: float | None = None
    judge: float | None = None
    overhead: float | None = None


class Churn(Block):
    """Files and lines changed against the start state, plan files and skill directories aside."""

    files: int
    insertions: int
    deletions: int


class Judgement(Block):
    """A judge's verdict on an answer, and what it was asked for; without a verdict ``pass`` and ``score`` are none.

    ``model`` is the one that answered, ``requested_model`` the one that was asked. ``votes`` counts valid verdicts,
    ``agreement`` is the share of them that says what most say. ``usage`` and ``cost_usd`` are of all its requests, and
    no part of the row's.
    """

    pass_: bool | None = Field(alias="pass")
    score: float | None
    reason: str | None
    model: str | None = None
    votes: int = 1
    agreement: float | None = None
    requested_model: str | None = None
    prompt_version: str | None = None
    requests: int | None = None
    usage: Usage | None = None
    cost_usd: float | None = None


class PluginBinding(Block):
    """The external plugin an arm used."""

    name: str
    version: str
    digest: str


class Row(Block):
    """One finished attempt of one cell."""

    schema_version: Literal[1] = 1
    cell_id: str
    task: str
    task_kind: Literal["implementation", "review", "question"]
    class_: str | None = Field(None, alias="class")
    variation: int = 0
    arm: str
    subject: str
    agent: str
    run: int
    attempt: int = 1
    shard: str = "1/1"

    outcome: Outcome
    kind: str | None = None
    reason: str | None = None
    resolved: bool | None = None
    authored_tests_passed: bool | None = None
    oracle_passed: bool | None = None
    review: dict[str, Any] | None = None
    answer: str | None = None
    judge: Judgement | None = None

    usage: Usage = Usage()
    usage_source: Literal["wire", "litellm"] | None = None
    usage_incomplete: bool = True
    claimed_usage: dict[str, Any] | None = None
    requests: int | None = None
    failed_requests: int | None = None
    cost_usd: float | None = None
    price_table: str | None = None
    num_turns: int | None = None
    tool_calls: dict[str, int] | None = None
    models_answered: tuple[str, ...] | None = None
    subagent_share: float | None = None

    timings: Timings = Timings()
    started_at: str | None = None
    recorded_at: str | None = None

    churn: Churn | None = None
    churn_fingerprint: str | None = None
    patch_digest: str | None = None

    skills_expected: tuple[str, ...] = ()
    skills_used: tuple[str, ...] | None = None
    skill_digest: str | None = None

    prompt_digest: str | None = None
    task_digest: str | None = None
    oracle_digest: str | None = None
    oracle_command_digest: str | None = None
    oracle_manifest_digest: str | None = None
    overlay_digest: str | None = None
    dependency_digest: str | None = None
    plugin: PluginBinding | None = None
    transcript_digest: str | None = None
    base_commit: str | None = None
    snapshot_commit: str | None = None
    start_commit: str | None = None
    head_commit: str | None = None

    harness_version: str
    agent_version: str | None = None
    requested_model: str | None = None
    effort: str | None = None
    agent_options: dict[str, str] | None = None

    host: str | None = None
    sandbox: Literal["bwrap", "host"] | None = None
    workspace_kind: Literal["overlay", "reflink", "copy"] | None = None
    reused_from: str | None = None

    def to_json(self) -> str:
        """Return the row as one line of ASCII JSON, keys in the order of the schema."""
        return self.model_dump_json(by_alias=True, ensure_ascii=True)
