"""What a question's cell comes to: its answer, the checks that are free, and the judge."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_wfbench.agents.stream import ToolCall, ToolResult, Transcript
from pytest_wfbench.cell.sessions import Fault, SessionEnd
from pytest_wfbench.evidence.row import Judgement
from pytest_wfbench.gateway.api import GatewayClient, SessionUsage
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.sandbox.spec import Sandbox
from pytest_wfbench.scoring.checks import Given, Unmeasured, failed_checks, file_sizes
from pytest_wfbench.scoring.judge import Judge, Judged
from pytest_wfbench.scoring.judge_prompt import PROMPT_VERSION, Case, tell
from pytest_wfbench.scoring.verdict import majority
from pytest_wfbench.sweep.judge import JudgeRoute, judge_labels
from pytest_wfbench.usage.cell import cell_usage
from pytest_wfbench.usage.prices import PriceTable
from pytest_wfbench.workspace.overlay import Workspace

TOOLS, TOOL_NAME = 60, 80


@dataclass(frozen=True)
class Grade:
    """What an answer is worth. ``judged`` is none where no judge was asked."""

    fault: Fault | None = None
    judged: Judged | None = None


@dataclass(frozen=True)
class Grader:
    """Grades the answer of one cell whose sessions ended well."""

    cell: Cell
    workspace: Workspace
    sandbox: Sandbox
    gateway: GatewayClient | None
    judge: Judge | None

    def grade(self, sessions: Sequence[SessionEnd]) -> Grade:
        """Check the answer, then have it judged. Raises GatewayLost."""
        answer = sessions[-1].transcript.answer
        if not answer.strip():
            return Grade(Fault("unusable", "no-output", "the agent ended without an answer"))
        fault = self._check(answer, sessions)
        rubric = self.cell.task.rubric
        return Grade(fault) if fault or rubric is None else self._judge(answer, rubric, sessions)

    def _check(self, answer: str, sessions: Sequence[SessionEnd]) -> Fault | None:
        checks = self.cell.task.checks
        tools = Counter(call.name for end in sessions for call in end.transcript.events if isinstance(call, ToolCall))
        try:
            sizes = file_sizes(checks, self.workspace.merged_mounts(), self.sandbox)
        except Unmeasured as error:
            return Fault("unusable", "infra-error", str(error))
        failed = list(failed_checks(checks, Given(answer, tools, sizes)))
        return Fault("miss", "check-failed", "; ".join(failed)) if failed else None

    def _judge(self, answer: str, rubric: str, sessions: Sequence[SessionEnd]) -> Grade:
        if self.judge is None or self.gateway is None:
            return Grade(Fault("unusable", "judge-error", "there is no judge: name one"))
        told = tell(Case(self.cell.task.steps_of(self.cell.variation), rubric, answer, telemetry_of(sessions)))
        judged = self.judge.judge(told, self.gateway, self.cell.id, judge_labels(self.cell))
        return Grade(judge_fault(judged), judged)


def judge_fault(judged: Judged) -> Fault | None:
    """Return why a judged answer is no pass. A judge that gives no verdict says nothing about the answer."""
    if judged.trouble and judged.usage.over_budget == "sweep":
        return Fault("unusable", "cancelled", "the sweep's budget was spent before the answer was judged")
    if judged.trouble:
        return Fault("unusable", "judge-error", judged.trouble)
    verdict = majority(judged.verdicts)
    return None if verdict.passed else Fault("miss", "rubric-missed", verdict.reason)


def judgement_of(judged: Judged, route: JudgeRoute | None, prices: PriceTable) -> Judgement:
    """Return what a row says of a judging: the verdict of most, and what it took."""
    verdict = majority(judged.verdicts) if judged.verdicts and not judged.trouble else None
    used = cell_usage(judged.usage.events, judged.usage.open_calls)
    return Judgement(
        **{"pass": verdict.passed if verdict else None},
        score=verdict.score if verdict else None,
        reason=verdict.reason if verdict else None,
        model=used.models_answered[0] if used.models_answered else None,
        votes=len(judged.verdicts),
        agreement=verdict.agreement if verdict else None,
        requested_model=route.typed if route else None,
        prompt_version=PROMPT_VERSION,
        requests=used.requests,
        usage=used.usage,
        cost_usd=None if used.incomplete else prices.cell_cost(judged.usage.events),
    )


def asked_usage(judged: Judged | None) -> SessionUsage:
    """Return what passed the judge's door, nothing where nobody was asked."""
    return judged.usage if judged else SessionUsage()


def telemetry_of(sessions: Sequence[SessionEnd]) -> str:
    """Return what was measured as JSON: tool calls by name, in order, and some numbers. No word of an argument."""
    calls = [call for end in sessions for call in _calls(end.transcript)]
    used = cell_usage([event for end in sessions for event in end.usage.events])
    told = {
        "tool_calls": calls[:TOOLS],
        "tool_calls_left_out": max(len(calls) - TOOLS, 0),
        "model_answers": used.turns,
        "output_tokens": used.usage.output,
    }
    return json.dumps(told, ensure_ascii=True)


def _calls(transcript: Transcript) -> list[Mapping[str, object]]:
    failed = {event.id for event in transcript.events if isinstance(event, ToolResult) and event.error}
    return [
        {"tool": re.sub(r"[^A-Za-z0-9_.:/-]+", "?", event.name)[:TOOL_NAME], "failed": event.id in failed}
        for event in transcript.events
        if isinstance(event, ToolCall)
    ]
