"""What a sweep is compared with, and where its traces go: looked at before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_wfbench.baselines.choose import choose
from pytest_wfbench.baselines.place import open_store
from pytest_wfbench.baselines.store import StoreError, entries
from pytest_wfbench.evidence.baseline import Baseline, Question
from pytest_wfbench.evidence.ci import branch_of
from pytest_wfbench.evidence.store import EvidenceError
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.options import Options
from pytest_wfbench.report.links import SAFE_URL, trace_url
from pytest_wfbench.report.words import plural
from pytest_wfbench.sweep.head import head_branch
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.traces.send import BadEndpoint, NotSent, endpoint_of, headers_of, send_traces
from pytest_wfbench.traces.spans import cell_traces

EXAMPLE = "https://traces.example.org/trace/{trace_id}"


def comparison_problems(options: Options, directory: Path) -> Iterator[Problem]:
    """Yield what is wrong with the store of baselines, the endpoint of traces and the template of their links."""
    if options.baselines:
        try:
            entries(open_store(options.baselines, directory))
        except StoreError as error:
            yield _problem("--wfbench-baselines", str(error), "See `wfbench baseline list`")
    if options.otlp_endpoint:
        try:
            endpoint_of(options.otlp_endpoint)
            headers_of(os.environ)
        except BadEndpoint as error:
            yield _problem("--wfbench-otlp-endpoint", str(error), "Write http://HOST:4318")
    if options.trace_url and (fault := _template_fault(options.trace_url)):
        yield _problem("--wfbench-trace-url", fault, f"Write {EXAMPLE}")


def _problem(flag: str, message: str, remedy: str) -> Problem:
    return Problem(flag, 0, "", "", message, remedy)


def _template_fault(template: str) -> str | None:
    if not re.search(r"\{(trace_id|cell_id)\}", template):
        return "the link of every cell would be the same: it has neither {trace_id} nor {cell_id}"
    filled = trace_url(template, "20260101T000000Z-abcdef", "cell")
    return None if SAFE_URL.match(filled) else f"{filled!r} is no plain http or https address"


def branch_for(options: Options, directory: Path) -> str | None:
    """Return the branch whose baselines come first; it is looked up only where baselines are asked for."""
    if not options.baselines:
        return None
    return options.branch or branch_of(os.environ) or head_branch(directory)


def traces_sent(plan: Plan, directory: Path, sweep_id: str) -> str | None:
    """Send the traces where that is asked for; return how it went in one sentence. No failure is one of the sweep's."""
    endpoint = plan.options.otlp_endpoint
    if not endpoint:
        return None
    try:
        sent = send_traces(cell_traces(directory), sweep_id, endpoint, os.environ)
    except (NotSent, BadEndpoint, EvidenceError) as error:
        return f"the traces were not sent: {error}. `wfbench trace` sends them again"
    return f"sent {plural(sent.spans, 'span')} of {plural(sent.cells, 'cell')} to {endpoint}"


def baseline_for(plan: Plan, branch: str | None, sweep_id: str) -> Baseline | None:
    """Return what the sweep is compared with, or none where nothing is filed that shares a task with it.

    Raises:
        StoreError, EvidenceError: when the store, or a baseline on the way, cannot be read.
    """
    if not plan.options.baselines:
        return None
    questions = [Question(task, variation, binding.task) for task, variation, binding in plan.bindings()]
    return choose(open_store(plan.options.baselines, plan.directory), branch, questions, sweep_id)
