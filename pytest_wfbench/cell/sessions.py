"""The sessions of one cell: each invocation of the agent, through its own door, and how it ended."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

from pytest_wfbench.agents.base import SessionInput
from pytest_wfbench.agents.conversation import Conversation
from pytest_wfbench.agents.stream import Transcript
from pytest_wfbench.cell.changes import Unreadable, changes_of
from pytest_wfbench.cell.handover import InvalidPlan, plan_of
from pytest_wfbench.gateway.api import Door, Event, GatewayClient, GatewayLost, OpenRequest, SessionUsage, Vigil
from pytest_wfbench.matrix.arms import SessionSpec
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.mcp.host import Ground, Services, serve
from pytest_wfbench.sandbox.identity import choose_identity
from pytest_wfbench.sandbox.spec import GATEWAY_URL, HOME, STREAM, Cancel, Command, Data, Finished, Mount, Sandbox
from pytest_wfbench.sweep.context import BoundAgent, bounds_of
from pytest_wfbench.sweep.scripts import labels_of
from pytest_wfbench.wires import UNSEEN
from pytest_wfbench.workspace.external import ExternalPlugin
from pytest_wfbench.workspace.overlay import Workspace
from pytest_wfbench.workspace.skills import empty_user_skills

KEY_SLACK = 60.0
CAUSE_CLIP = 4000
# Beyond this share of its time at the gateway's gate, nobody knows what a session had made of the rest.
STOOD_SHARE = 0.1


@dataclass(frozen=True)
class Fault:
    """Why a cell is not a pass, by the kinds of evidence.md; ``reason`` is one line."""

    outcome: Literal["miss", "unusable"]
    kind: str
    reason: str


@dataclass(frozen=True)
class SessionEnd:
    """One session, over: its stream, its metered usage, its process, and what was wrong with it, if anything."""

    name: str
    transcript: Transcript
    usage: SessionUsage
    finished: Finished
    produced: str | None
    fault: Fault | None


@dataclass(frozen=True)
class Stage:
    """Where sessions take place, when that is not simply the workspace: mounts, variables, and what ``{output}`` is."""

    mounts: tuple[Mount, ...]
    env: Mapping[str, str]
    output: str


@dataclass(frozen=True)
class SessionRunner:
    """Runs the sessions of one cell in their order, and stops at the first that is at fault."""

    cell: Cell
    workspace: Workspace
    sandbox: Sandbox
    gateway: GatewayClient
    agent: BoundAgent
    effort: str | None
    options: Mapping[str, str]
    plugin: ExternalPlugin | None = None
    stage: Stage | None = None

    def run_all(self) -> Iterator[SessionEnd]:
        """Yield each session as it ends."""
        plan: str | None = None
        for spec in self.cell.arm.sessions:
            end = self._run(spec, plan)
            yield end
            if end.fault:
                return
            plan = end.produced or plan

    def _run(self, spec: SessionSpec, plan: str | None) -> SessionEnd:
        timeout = spec.timeout or self.cell.task.timeout.session
        with self._servers(timeout) as services:
            if self.agent.adapter.uses_model:
                talk, finished, usage = self._run_metered(spec, plan, timeout, services)
            else:
                talk = self._conversation(spec, plan, timeout, services)
                finished, usage = self.sandbox.run(self._command(talk, timeout, services)), SessionUsage()
        transcript = talk.read(self.agent.adapter, finished.stdout, finished.status)
        fault = session_fault(self._skill(spec), finished, transcript, usage, self.agent.adapter.uses_model)
        produced = None
        if not fault and self.stage is None and (spec.produces or spec is not self.cell.arm.sessions[-1]):
            produced, fault = self._handed_over(spec.produces)
        return SessionEnd(spec.name, transcript, usage, finished, produced, fault)

    def _skill(self, spec: SessionSpec) -> str | None:
        """Return what the agent calls the skill that a session is to use."""
        return self.plugin.skill_name(spec.skill) if self.plugin and spec.skill else spec.skill

    def _servers(self, timeout: float) -> AbstractContextManager[Services]:
        """Have the task's MCP servers ready, over a read-only view of the start state."""
        bounds = bounds_of(self.cell.task.limits)
        ground = Ground(self.sandbox, self.workspace.view_mounts(), bounds, timeout + KEY_SLACK)
        return serve(self.cell.mcp, ground, choose_identity())

    def _run_metered(
        self, spec: SessionSpec, plan: str | None, timeout: float, services: Services
    ) -> tuple[Conversation, Finished, SessionUsage]:
        """Run a session with a door of its own; it is ended when the gateway is lost, since nobody answers any more."""
        door = self.gateway.open(self._request(spec, timeout))
        with self.gateway.watch() as vigil:
            try:
                talk = self._conversation(spec, plan, timeout, services, door)
                finished = self.sandbox.run(self._command(talk, timeout, services, door, vigil))
            finally:
                usage = self._close(door, vigil)
        return talk, finished, usage

    def _close(self, door: Door, vigil: Vigil) -> SessionUsage:
        try:
            return self.gateway.close(door)
        except GatewayLost as error:
            raise GatewayLost(f"the gateway was lost during the session: {vigil.cause() or error}") from error

    def _request(self, spec: SessionSpec, timeout: float) -> OpenRequest:
        cell = self.cell
        return OpenRequest(
            cell_id=cell.id,
            labels=labels_of(cell, spec.name),
            models=(cell.subject.model,),
            seconds=timeout + KEY_SLACK,
            provider_tools=cell.task.provider_tools,
        )

    def _conversation(
        self, spec: SessionSpec, plan: str | None, timeout: float, services: Services, door: Door | None = None
    ) -> Conversation:
        """Return what the agent is told: the session's prompt over the task's, then the further steps as they are."""
        first, *further = self.cell.task.steps_of(self.cell.variation)
        told = SessionInput(
            prompt=spec.prompt.format(task=first, plan=plan or "", output=self.stage.output if self.stage else ""),
            model=self.cell.subject.model,
            session_id=str(uuid.uuid4()),
            timeout=timeout,
            base_url=GATEWAY_URL if door else None,
            key=door.key if door else None,
            skill=self._skill(spec),
            deny=self.cell.arm.tools.deny,
            effort=self.effort,
            options=self.options,
            mcp=services.commands,
            plugin=self.plugin.mount.target if self.plugin else None,
            turns=1 + len(further),
        )
        later = (replace(told, prompt=text, skill=None, turn=turn) for turn, text in enumerate(further, 1))
        return Conversation((told, *later))

    def _command(
        self,
        talk: Conversation,
        timeout: float,
        services: Services,
        door: Door | None = None,
        cancel: Cancel | None = None,
    ) -> Command:
        start = talk.start(self.agent.adapter)
        plugin = (self.plugin.mount,) if self.plugin else ()
        stage = self.stage or Stage(self.workspace.session_mounts(), {}, "")
        private = (*empty_user_skills(), *(Data(f"{HOME}/{name}", data) for name, data in start.files.items()))
        return Command(
            argv=start.argv,
            mounts=(*stage.mounts, *self.agent.runtime.mounts, *services.mounts, *plugin, *private),
            env={**start.env, **stage.env},
            stdin=start.stdin,
            timeout=timeout,
            gateway=door.socket if door else None,
            bounds=bounds_of(self.cell.task.limits),
            stdout_limit=STREAM,
            keep="whole",
            cancel=cancel,
        )

    def _handed_over(self, pattern: str | None) -> tuple[str | None, Fault | None]:
        """Return the plan that a session wrote, if it was to write one, or why no session can follow it."""
        try:
            change = changes_of(self.workspace, self.sandbox)
            if change.skills_changed:
                return None, skill_fault()
            return (plan_of(change, pattern) if pattern else None), None
        except Unreadable as error:
            return None, Fault("miss", "plan-invalid" if pattern else "no-work-produced", str(error))
        except InvalidPlan as error:
            return None, Fault("miss", "plan-invalid", str(error))


def skill_fault() -> Fault:
    """Return what is wrong with a cell in which a directory of skills is not what it was."""
    return Fault("miss", "skill-changed", "the agent changed or added skills, which are not its work")


def session_fault(
    skill: str | None, finished: Finished, transcript: Transcript, usage: SessionUsage, uses_model: bool
) -> Fault | None:
    """Decide what was wrong with a session, from the process, the meter and the stream, in this order.

    ``skill`` is what the agent calls the skill that it was to use, if any.

    The rules are those of evidence.md: a wall clock that ran out while the provider owed an answer is the provider's
    fault, one that ran out otherwise the candidate's.
    """
    if not finished.started:
        return Fault("unusable", "infra-error", f"the sandbox failed: {_tail(finished.stderr)}")
    if finished.cancelled:
        return Fault("unusable", "cancelled", "the session was cancelled")
    if usage.over_budget == "sweep":
        return Fault("unusable", "cancelled", "the sweep's budget cut the session short")
    if finished.limit:
        return Fault("miss", f"limit-{finished.limit}", f"the session {finished.limit_told}")
    if usage.over_budget == "provider":
        return Fault("unusable", "provider-error", "the cell's budget was spent on answers that the provider broke off")
    if usage.over_budget == "cell":
        return Fault("miss", "budget-exceeded", "the cell's budget was spent before its work was done")
    if finished.timed_out and (usage.standing or usage.stood > STOOD_SHARE * finished.seconds):
        reason = f"the session ran out of time, and had waited {usage.stood:.0f} s of it at the gateway"
        return Fault("unusable", "infra-error", reason)
    if finished.timed_out and (usage.waiting or usage.open_calls):
        return Fault("unusable", "provider-error", "the session ran out of time while the provider owed an answer")
    if finished.timed_out and (failure := _unanswered(usage)):
        reason = f"the session ran out of time after the provider had failed: {_provider_message(failure)}"
        return Fault("unusable", "provider-error", reason)
    if finished.timed_out:
        return Fault("miss", "session-timeout", f"the session ran longer than {finished.seconds:.0f} s")
    return (_model_fault(usage) if uses_model else None) or _stream_fault(skill, finished, transcript, usage)


def _unanswered(usage: SessionUsage) -> Event | None:
    """Return the last request, where the provider failed it: whoever waits before he asks again still has no answer.

    What the client itself got wrong, or had refused on the way, is no fault of the provider's.
    """
    calls = [event for event in usage.events if event.kind == "generate"]
    last = calls[-1] if calls else None
    if last is None or last.wire == UNSEEN or last.status not in ("failure", "cut"):
        return None
    status = last.http_status
    return last if status is None or status < 400 or status == 429 or status >= 500 else None


def _model_fault(usage: SessionUsage) -> Fault | None:
    calls = [event for event in usage.events if event.kind == "generate"]
    if any(event.status == "success" for event in calls):
        return None
    if calls:
        return Fault("unusable", "provider-error", _provider_message(calls[-1]))
    return Fault("unusable", "no-output", "the gateway saw no completed answer")


def _stream_fault(skill: str | None, finished: Finished, transcript: Transcript, usage: SessionUsage) -> Fault | None:
    if transcript.fault:
        return Fault("unusable", "evidence-unverified", transcript.fault)
    final = transcript.final
    if final is None or final.status == "error":
        failed = [event for event in usage.events if event.kind == "generate"]
        if failed and failed[-1].status != "success":
            return Fault("unusable", "provider-error", _provider_message(failed[-1]))
        told = final.error if final and final.error else f"the agent exited {finished.status}"
        said = finished.stderr.decode(errors="replace").strip().splitlines()
        return Fault("unusable", "session-error", _one_line(f"{told}: {said[-1]}" if said else told))
    if skill and skill not in transcript.skills_used:
        return Fault("miss", "skill-not-invoked", f"the session did not use the skill {skill!r}")
    return None


def _provider_message(event: Event) -> str:
    told = event.error_message or event.error_class or event.status
    status = f"HTTP {event.http_status}: " if event.http_status else ""
    return _one_line(f"{status}{told}")


def _tail(data: bytes) -> str:
    return _one_line(data.decode(errors="replace")[-CAUSE_CLIP:])


def _one_line(text: str) -> str:
    return " ".join(text.split())[:CAUSE_CLIP]
