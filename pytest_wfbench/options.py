"""``--wfbench-*`` and the ini, as one frozen value. Standard library only: every pytest start imports this."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

PREFIX = "--wfbench-"
NUMBER = re.compile(r"[0-9]{1,9}\Z")
FRACTION = re.compile(r"(?=[0-9.])[0-9]{0,9}(\.[0-9]{1,9})?\Z")

_ABOVE_ZERO = (
    "promotion_min_runs", "promotion_min_improvement", "promotion_max_task_regression", "promotion_min_f1_gain",
)  # fmt: skip

Kind = Literal["text", "number", "fraction", "flag", "many", "names"]


class BadOption(ValueError):
    """An option whose value does not read; the message names it and the remedy."""


@dataclass(frozen=True)
class OptionSpec:
    """One option: its name without the prefix, how its text reads, what stands for "not given", and its help."""

    name: str
    kind: Kind
    default: Any
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The option as typed."""
        return PREFIX + self.name

    @property
    def field(self) -> str:
        """The field of ``Options``."""
        return self.name.replace("-", "_")

    @property
    def ini(self) -> str:
        """The ini name: the option's without dashes, underscores for hyphens."""
        return "wfbench_" + self.field


SPECS: tuple[OptionSpec, ...] = (
    OptionSpec("arms", "names", None, "arms to run, comma-separated (default: those marked default)", "A,B"),
    OptionSpec("runs", "number", 1, "repeats per cell key, numbered from 1", "N"),
    OptionSpec("subject", "many", (), "AGENT:MODEL, repeatable (default: mini:replay/demo where it exists)", "S"),
    OptionSpec("effort", "text", None, "reasoning effort, for agents that have one", "E"),
    OptionSpec("agent-option", "many", (), "AGENT.NAME=VALUE, repeatable: what docs/agents.md lets be set", "O"),
    OptionSpec("strict-versions", "flag", False, "agents of untested releases are errors"),
    OptionSpec("arms-file", "text", None, "arms (default: arms.yaml beside the case file)", "FILE"),
    OptionSpec("candidate-overlay", "text", None, "candidate files laid over the skills of candidate arms", "DIR"),
    OptionSpec("plugin-dir", "text", None, "external plugin of arms with `plugin: true`", "DIR"),
    OptionSpec("plugin-version", "text", None, "the version that the plugin's manifest must have", "V"),
    OptionSpec("include-expensive", "flag", False, "run tasks marked expensive too"),
    OptionSpec("results", "text", "results", "parent of the sweep's results directory", "DIR"),
    OptionSpec("record", "text", None, "write cassettes of all sessions to a new directory", "DIR"),
    OptionSpec("prices", "text", None, "price table that overrides the bundled one", "FILE"),
    OptionSpec("judge-model", "text", None, "model that judges answers to questions with a rubric", "M"),
    OptionSpec("judge-votes", "number", 1, "verdicts for each answer, of which most decide; odd", "N"),
    OptionSpec("judge-gateway", "text", None, "URL of the gateway of a judge model that is a bare name", "URL"),
    OptionSpec("retries", "number", 1, "tries again of a question whose provider failed before any output", "N"),
    OptionSpec("no-preflight", "flag", False, "start cells without a sign of life from each model"),
    OptionSpec("max-cost", "fraction", None, "budget of the sweep, USD", "USD"),
    OptionSpec("cell-max-cost", "fraction", None, "budget of each cell, USD", "USD"),
    OptionSpec("max-parallel-requests", "number", None, "most requests that models answer at once", "N"),
    OptionSpec("outage-limit", "number", 5, "stop after N consecutive unusable cells; 0 is off", "N"),
    OptionSpec("min-pass", "fraction", None, "least share of graded cells that must pass, 0..1", "F"),
    OptionSpec("max-unusable", "number", 0, "unusable cells tolerated", "N"),
    OptionSpec("baselines", "text", None, "where baselines are filed: a directory, or git:DIR#BRANCH", "STORE"),
    OptionSpec("branch", "text", None, "branch whose baseline comes first (default: the one that is tested)", "B"),
    OptionSpec("otlp-endpoint", "text", None, "send a trace of each cell there when the sweep has ended", "URL"),
    OptionSpec("trace-url", "text", None, "what the comment links for a cell: a URL with {trace_id}", "URL"),
    OptionSpec("promotion-metric", "text", "cost_usd", "metric of the implementation gate", "M",
               ("cost_usd", "output_tokens", "duration_s", "num_turns")),
    OptionSpec("promotion-min-runs", "number", 3, "least valid runs of an arm", "N"),
    OptionSpec("promotion-min-improvement", "fraction", 5.0, "least median improvement, percent", "P"),
    OptionSpec("promotion-max-task-regression", "fraction", 20.0, "most a single task may get worse, percent", "P"),
    OptionSpec("promotion-min-f1-gain", "fraction", 0.01, "least gain of a review, weighted F1", "F"),
    OptionSpec("promotion-confidence", "fraction", None, "promote only what chance explains no better, 0.95 say", "C"),
    OptionSpec("sandbox", "text", "bwrap", "bwrap, or host: no boundary at all", None, ("bwrap", "host")),
    OptionSpec("limit-memory", "text", None, "memory of a sandbox, for tasks without their own (default: 8GiB)", "S"),
    OptionSpec("limit-processes", "text", None, "processes of a sandbox, likewise (default: 512)", "N"),
    OptionSpec("limit-disk", "text", None, "bytes a sandbox adds to the workspace, likewise (default: 4GiB)", "S"),
    OptionSpec("limit-inodes", "text", None, "files a sandbox adds to the workspace, likewise (default: 500000)", "N"),
    OptionSpec("limit-file-size", "text", None, "size of any one file, likewise (default: 1GiB)", "S"),
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """What was asked for. Paths are as typed, relative to the directory pytest was started in."""

    arms: tuple[str, ...] | None
    runs: int
    subject: tuple[str, ...]
    effort: str | None
    arms_file: str | None
    candidate_overlay: str | None
    include_expensive: bool
    results: str
    prices: str | None
    outage_limit: int
    min_pass: float | None
    max_unusable: int
    promotion_metric: str
    promotion_min_runs: int
    promotion_min_improvement: float
    promotion_max_task_regression: float
    sandbox: str
    promotion_min_f1_gain: float = 0.01
    promotion_confidence: float | None = None
    max_cost: float | None = None
    cell_max_cost: float | None = None
    max_parallel_requests: int | None = None
    agent_option: tuple[str, ...] = ()
    strict_versions: bool = False
    no_preflight: bool = False
    judge_model: str | None = None
    judge_votes: int = 1
    judge_gateway: str | None = None
    retries: int = 1
    baselines: str | None = None
    branch: str | None = None
    otlp_endpoint: str | None = None
    trace_url: str | None = None
    record: str | None = None
    plugin_dir: str | None = None
    plugin_version: str | None = None
    limit_memory: str | None = None
    limit_processes: str | None = None
    limit_disk: str | None = None
    limit_inodes: str | None = None
    limit_file_size: str | None = None

    @property
    def limits(self) -> dict[str, str | None]:
        """The limits as typed, by the names that a case file gives them."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name.startswith("limit_")}
        return {name.removeprefix("limit_"): text for name, text in given.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the options as plain JSON, for ``sweep.json`` and for workers."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def _number(spec: OptionSpec, value: str) -> int:
    if not NUMBER.match(value):
        raise BadOption(f"{spec.flag}: {value!r} is not a whole number: give 0, 1, 2, … with at most 9 digits")
    return int(value)


def _fraction(spec: OptionSpec, value: str) -> float:
    if not FRACTION.match(value):
        raise BadOption(f"{spec.flag}: {value!r} is not a number of 0 or more: give 0.8 or 5")
    return float(value)


def _names(spec: OptionSpec, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise BadOption(f"{spec.flag}: {value!r} has an empty name: write a,b without a trailing comma")
    if len(set(names)) != len(names):
        raise BadOption(f"{spec.flag}: {value!r} names one twice")
    return names


def _text(spec: OptionSpec, value: str) -> str:
    if spec.choices and value not in spec.choices:
        raise BadOption(f"{spec.flag}: {value!r} is not one of {', '.join(spec.choices)}")
    return value


READERS: dict[str, Callable[[OptionSpec, str], Any]] = {
    "number": _number,
    "fraction": _fraction,
    "names": _names,
    "text": _text,
}


def _read(spec: OptionSpec, given: Any) -> Any:
    if given is None or given == []:
        return spec.default
    if isinstance(given, str) and not given.strip():
        raise BadOption(f"{spec.flag}: needs a value")
    if spec.kind == "many":
        return tuple(given)
    return given if spec.kind == "flag" else READERS[spec.kind](spec, str(given))


def read_options(lookup: Callable[[OptionSpec], Any]) -> Options:
    """Build the options from what ``lookup`` finds for each: text, a list of texts, a flag, or none.

    Raises:
        BadOption: with a line for each value that does not read or is out of its range.
    """
    values: dict[str, Any] = {}
    faults: list[str] = []
    for spec in SPECS:
        try:
            values[spec.field] = _read(spec, lookup(spec))
        except BadOption as error:
            faults.append(str(error))
    faults += _out_of_range(values)
    if faults:
        raise BadOption("\n".join(faults))
    return Options(**values)


def _out_of_range(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with values that did read."""
    if values.get("runs", 1) < 1:
        yield "--wfbench-runs: must be at least 1"
    if values.get("judge_votes", 1) % 2 == 0:
        yield "--wfbench-judge-votes: must be odd, so that most votes decide"
    if (values.get("min_pass") or 0) > 1:
        yield "--wfbench-min-pass: must be a share between 0 and 1, for example 0.8"
    if (confidence := values.get("promotion_confidence")) is not None and not 0 < confidence < 1:
        yield "--wfbench-promotion-confidence: must be between 0 and 1, for example 0.95"
    for name in _ABOVE_ZERO:
        if values.get(name, 1) <= 0:
            yield f"{PREFIX}{name.replace('_', '-')}: must be greater than 0"
    for name in ("max_cost", "cell_max_cost", "max_parallel_requests"):
        if values.get(name) == 0:
            yield f"{PREFIX}{name.replace('_', '-')}: must be greater than 0; leave it out for no limit"


def from_json(plain: dict[str, Any]) -> Options:
    """Rebuild what ``Options.to_json`` gave."""
    tuples: Sequence[str] = ("arms", "subject", "agent_option")
    values: dict[str, Any] = {k: tuple(v) if k in tuples and v is not None else v for k, v in plain.items()}
    return Options(**values)
