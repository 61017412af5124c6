"""``sweep.json``: all about a sweep that is not a row. Report, gate and comment read it and the rows, no more."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_wfbench.evidence.ci import Ci
from pytest_wfbench.evidence.row import Block, PluginBinding
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.task import TaskKind

SCHEMA_VERSION = 1

RunStatus = Literal["running", "complete", "aborted"]
StopKind = Literal["preflight", "outage", "budget", "interrupted", "other"]
SkipKind = Literal["expensive", "unsupported", "reused", "outage-stop", "budget-stop", "shard"]
Origin = Literal["model-proposer", "manual-initial-overlay"]
Metric = Literal["cost_usd", "output_tokens", "duration_s", "num_turns"]


class Asked(BaseModel):
    """The options of the sweep, flat: ``Options.to_json()``. Those that verdict and gate read are typed here.

    Shares are 0..1, improvements and regressions percent. Other keys are kept as they are.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    runs: int = 1
    min_pass: float | None = None
    max_unusable: int = 0
    judge_model: str | None = None
    baselines: str | None = None
    trace_url: str | None = None
    promotion_metric: Metric = "cost_usd"
    promotion_min_runs: int = Field(3, gt=0)
    promotion_min_improvement: float = Field(5.0, gt=0)
    promotion_max_task_regression: float = Field(20.0, gt=0)
    promotion_min_f1_gain: float = Field(0.01, gt=0)
    promotion_confidence: float | None = Field(None, gt=0, lt=1)


class BoundFile(Block):
    """A file that evidence is bound to: relative path, size in bytes, ``sha256:…``."""

    path: str
    bytes: int
    sha256: str


class DependencyBinding(Block):
    """A directory mounted read-only, and the digest of its content."""

    source: str
    target: str
    digest: str


class TaskBinding(Block):
    """One task as it was run: what it is bound to by digest and commit. ``prompts`` has one digest per variation."""

    id: str
    kind: TaskKind
    class_: str | None = Field(None, alias="class")
    variations: int = 0
    expensive: bool = False
    tags: tuple[str, ...] = ()
    ref: str | None = None
    base_commit: str | None = None
    snapshot_commit: str | None = None
    task_digest: str | None = None
    prompts: tuple[str, ...] = ()
    setup_digest: str | None = None
    verify_digest: str | None = None
    oracle_digest: str | None = None
    oracle_command_digest: str | None = None
    oracle_manifest_digest: str | None = None
    files: tuple[BoundFile, ...] = ()
    dependencies: tuple[DependencyBinding, ...] = ()


class SubjectInfo(Block):
    """An agent and a model as the sweep ran them; ``subject`` is how rows name the pair.

    ``tested`` are the releases of the agent that the harness is tested with, where its version is none of them.
    """

    subject: str
    agent: str
    model: str | None = None
    agent_version: str | None = None
    effort: str | None = None
    options: dict[str, str] = Field(default_factory=dict)
    tested: str | None = None


class Versions(Block):
    """What ran: the harness, LiteLLM, the price table, the sandbox tool and each agent by name."""

    harness: str
    litellm: str | None = None
    price_table: str | None = None
    bubblewrap: str | None = None
    agents: dict[str, str] = Field(default_factory=dict)


class PlannedCell(Block):
    """A cell that this sweep (or this shard of it) was to run."""

    cell_id: str
    task: str
    variation: int = 0
    arm: str
    subject: str
    run: int


class Skipped(Block):
    """A cell, or with no ``cell_id`` a whole task, that was not run, and why in words."""

    kind: SkipKind
    task: str
    cell_id: str | None = None
    reason: str


class OpenCall(Block):
    """An upstream request that was opened and never ended."""

    cell_id: str
    session: str
    call_id: str


class Stop(Block):
    """Why a sweep ended before its last cell. ``cause`` is one line a person can act on."""

    kind: StopKind
    cause: str


class Spending(Block):
    """The budgets in USD, and what was charged to the sweep's.

    ``assumed`` is the part of it that nobody knows: requests without a full account, charged at the most they allowed.
    ``overshoot`` is what was charged beyond ``max_cost``: by requests that were under way when it was reached.
    """

    max_cost: float | None = None
    cell_max_cost: float | None = None
    charged: float
    assumed: float = 0.0
    overshoot: float | None = None


class Pause(Block):
    """How often a provider said when to come again, of one requested model, and the seconds its road was closed."""

    model: str
    times: int
    seconds: float


class Traffic(Block):
    """What was waited for at the gateway: seconds in which sessions stood still, summed, and pauses of whole roads."""

    waited: float = 0.0
    pauses: tuple[Pause, ...] = ()


class Candidate(Block):
    """The overlay that candidate arms ran with. ``target_base_digests`` are of the committed bytes it would replace.

    ``mirrors`` are directories that repeat the skills' own, each file byte for byte.
    """

    overlay_digest: str
    origin: Origin = "manual-initial-overlay"
    proposer_model: str | None = None
    files: tuple[BoundFile, ...] = ()
    target_base_digests: dict[str, str] = Field(default_factory=dict)
    required_arms: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()


class Sweep(Block):
    """One pytest invocation over cells. Times are UTC, ISO 8601; ``head`` is the suite's short commit, ``branch`` the
    one whose baselines come first, where any are looked for.

    ``planned`` and ``skipped`` are disjoint but for the kinds ``outage-stop`` and ``budget-stop``. ``missing_shards``
    names, after a merge, the shards that never reported.
    """

    schema_version: Literal[1] = 1
    sweep_id: str
    started_at: str
    ended_at: str | None = None
    run_status: RunStatus = "running"
    exit_status: int | None = None
    stop: Stop | None = None
    shard: str = "1/1"
    missing_shards: tuple[str, ...] = ()

    options: Asked = Asked()
    arms: tuple[Arm, ...] = ()
    subjects: tuple[SubjectInfo, ...] = ()
    tasks: tuple[TaskBinding, ...] = ()
    plugin: PluginBinding | None = None
    candidate: Candidate | None = None
    lock: dict[str, str] = Field(default_factory=dict)

    versions: Versions
    host: str | None = None
    sandbox: Literal["bwrap", "host"] = "bwrap"
    head: str | None = None
    branch: str | None = None
    ci: Ci | None = None

    planned: tuple[PlannedCell, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    open_calls: tuple[OpenCall, ...] = ()
    spending: Spending | None = None
    traffic: Traffic | None = None

    def to_json(self) -> str:
        """Return the manifest as indented JSON, keys in the order of the schema."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @property
    def skipped_ids(self) -> frozenset[str]:
        """Ids of this sweep's cells that were skipped one by one; another shard's cells are not its own."""
        return frozenset(entry.cell_id for entry in self.skipped if entry.cell_id and entry.kind != "shard")

    def arm(self, name: str) -> Arm | None:
        """Return an arm's definition, or none where only rows speak of it."""
        return next((arm for arm in self.arms if arm.name == name), None)
