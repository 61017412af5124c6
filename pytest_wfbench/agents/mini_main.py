"""The program that runs inside the sandbox: mini-swe-agent, talking to the gateway, reporting JSON lines.

Of this package there is no more than it imports; that imports the standard library and minisweagent only. Its one
argument is ``Settings`` as JSON, its standard input the prompt, its key the variable ``WFBENCH_MINI_KEY``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.exceptions import FormatError, Submitted

from pytest_wfbench.agents.clipping import clip
from pytest_wfbench.agents.mini_road import MALFORMED, ProviderError, Road, TransientError, clean

PR_SET_DUMPABLE = 4
OBSERVATION_CLIP = 10_000
PAUSE = 0.5
KEY = "WFBENCH_MINI_KEY"
END = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
GOOD_ENDS = frozenset({"Submitted", "Answered"})

SYSTEM = """\
You work alone, in a shell, on the task that the user gives you. Nobody will answer questions.
Act by calling the tool `bash`. Each command runs in a new shell in the same directory, so that a `cd` or a variable
does not last. It has no terminal and no input, and is ended after {{ timeout }} seconds.
When everything is done, call `bash` with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT` and nothing else in the command.
If the task only asks a question, answer it in plain text without a tool call: that ends your work too.
"""
NUDGE = "Your answer held neither text nor a tool call, or was cut off. Call the tool `bash`, with a shorter answer."

_COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
BASH = {"type": "function", "function": {"name": "bash", "description": "Run a command.", "parameters": _COMMAND}}
REFUSAL: dict[str, Any] = {"output": "only `bash` can be called", "returncode": -1, "exception_info": ""}
QUIET_TOOLS = {"PAGER": "cat", "MANPAGER": "cat", "GIT_PAGER": "cat", "PIP_PROGRESS_BAR": "off", "TQDM_DISABLE": "1"}


@dataclass(frozen=True)
class Settings:
    """What the parent says: times in seconds. ``converses``: this is one of several prompts of a conversation."""

    model: str
    base_url: str
    timeout: float
    command_timeout: int = 60
    step_limit: int = 250
    effort: str | None = None
    converses: bool = False


class Events:
    """The road to the parent: a descriptor that no command of the agent inherits."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, kind: str, **fields: object) -> None:
        """Write one event as one line, at once."""
        line = json.dumps({"type": kind, **fields}).encode() + b"\n"
        while line:
            line = line[os.write(self.descriptor, line) :]


def private_events() -> Events:
    """Take standard output away from every child, present and future.

    The tools run under the same uid and are not to be trusted with the evidence: what they print must not reach the
    stream, and ``/proc/<pid>/fd`` and memory of this process must be closed to them.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot close this process to others")
    descriptor = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return Events(descriptor)


def read_prompt() -> str:
    """Read standard input to its end and leave nothing in its place."""
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return prompt


def action_of(call: Any) -> dict[str, Any]:
    """Read one tool call: the command, or none where it is not one that can be run."""
    call = call if isinstance(call, dict) else {}
    function = call["function"] if isinstance(call.get("function"), dict) else {}
    name, raw = clean(function.get("name")), clean(function.get("arguments"))
    command = None
    with contextlib.suppress(*MALFORMED):
        command = json.loads(raw)["command"] if name == "bash" else None
    text = clean(command) if isinstance(command, str) else None
    return {"tool_call_id": clean(call.get("id")), "name": name, "raw": raw, "command": text}


def assistant(content: str, actions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the model's message as it goes back to the model."""
    calls = [
        {"id": a["tool_call_id"], "type": "function", "function": {"name": a["name"], "arguments": a["raw"]}}
        for a in actions
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls, "extra": {"actions": actions}}


def observation(action: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """Return the tool message that answers one call."""
    text = f"exit status {output['returncode']}\n{output['output']}{output['exception_info']}"
    return {"role": "tool", "tool_call_id": action["tool_call_id"], "content": clip(clean(text), OBSERVATION_CLIP)}


@dataclass
class Model:
    """What mini-swe-agent asks of a model."""

    settings: Settings
    road: Road
    events: Events
    config: None = None

    def query(self, messages: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        """Return the next message, or end the work where the model only speaks."""
        choice = self._ask([{k: v for k, v in message.items() if k != "extra"} for message in messages])
        text = clean(choice["message"].get("content"))
        if text.strip():
            self.events.send("text", text=text)
        calls = choice["message"].get("tool_calls")
        if calls and isinstance(calls, list):
            return assistant(text, [action_of(call) for call in calls])
        if not text.strip() or choice.get("finish_reason") == "length":
            raise FormatError({"role": "user", "content": NUDGE, "extra": {}})
        answered = {"role": "exit", "content": "", "extra": {"exit_status": "Answered", "submission": ""}}
        raise Submitted({"role": "assistant", "content": text}, answered)

    def format_observation_messages(
        self, message: dict[str, Any], outputs: list[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return one tool message for each call."""
        return [observation(*pair) for pair in zip(message["extra"]["actions"], outputs, strict=True)]

    def format_message(self, **message: Any) -> dict[str, Any]:
        """Return a message as it is."""
        return message

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """Add nothing, neither to templates nor to a trajectory."""
        return {}

    serialize = get_template_vars

    def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        effort = {"reasoning_effort": self.settings.effort} if self.settings.effort else {}
        raw = json.dumps({"model": self.settings.model, "messages": messages, "tools": [BASH], **effort}).encode()
        try:
            return self.road.ask(raw)
        except TransientError as error:
            self.events.send("retry", reason=str(error))
            time.sleep(PAUSE)
            return self.road.ask(raw)


class Environment(LocalEnvironment):
    """Runs commands as mini-swe-agent does, and reports each."""

    def __init__(self, events: Events, timeout: int) -> None:
        super().__init__(env=QUIET_TOOLS, timeout=timeout)
        self.events = events
        self.calls = 0

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run one action between its two events; ids are counted here, since a model may repeat its own."""
        self.calls += 1
        refused = action["command"] is None
        arguments = {"arguments": action["raw"]} if refused else {"command": action["command"]}
        self.events.send("tool_call", id=str(self.calls), name=action["name"], arguments=arguments)
        try:
            output = dict(REFUSAL) if refused else super().execute(action, cwd, timeout=timeout)
        except Submitted as end:
            self._report(0, END)
            if submission := clean(end.messages[0]["content"]).strip():
                self.events.send("text", text=submission)
            raise
        self._report(output["returncode"], output["output"] + output["exception_info"])
        return output

    def _report(self, status: int, output: str) -> None:
        self.events.send("tool_result", id=str(self.calls), error=status != 0, output=clip(clean(output)))


class Agent(DefaultAgent):
    """Goes on with a conversation: what was said before stands in the place of a new beginning."""

    before: tuple[dict[str, Any], ...] = ()

    def add_messages(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        """Take messages in; the first ones are the system's and the prompt."""
        begins = not self.messages and bool(self.before)
        return cast(
            "list[dict[str, Any]]", super().add_messages(*((*self.before, messages[1]) if begins else messages))
        )


def history() -> Path:
    """Return where what was said is kept from one prompt to the next."""
    return Path(os.environ["MSWEA_GLOBAL_CONFIG_DIR"], "history.json")


def recall() -> tuple[dict[str, Any], ...]:
    """Return what was said before, nothing at the beginning."""
    return tuple(json.loads(history().read_text())) if history().exists() else ()


def remember(messages: list[dict[str, Any]]) -> None:
    """Write down what was said, whole: a call that ended the work gets the answer that the model never saw."""
    said = [{k: v for k, v in message.items() if k != "extra"} for message in messages if message["role"] != "exit"]
    answered = {message.get("tool_call_id") for message in said}
    calls = [call for message in said for call in message.get("tool_calls") or () if call["id"] not in answered]
    said += [{"role": "tool", "tool_call_id": call["id"], "content": "exit status 0\n"} for call in calls]
    history().parent.mkdir(parents=True, exist_ok=True)
    history().write_text(json.dumps(said))


def run(model: Model, prompt: str) -> str | None:
    """Run the agent to its end; return the error, or none."""
    agent = Agent(
        model,
        Environment(model.events, model.settings.command_timeout),
        system_template=SYSTEM,
        instance_template="{{ task }}",
        cost_limit=0.0,
        step_limit=model.settings.step_limit,
    )
    if model.settings.converses:
        agent.before = recall()
    try:
        end = str(agent.run(prompt).get("exit_status"))
        if model.settings.converses:
            remember(agent.messages)
    except ProviderError as error:
        end = str(error)
    if model.road.complete and model.road.used:
        model.events.send("usage_claim", usage=model.road.used)
    return None if end in GOOD_ENDS else end


def main() -> int:
    """Run one session; exit status 1 says that it ended in an error, which the last event names."""
    events = private_events()
    settings = Settings(**json.loads(sys.argv[1]))
    road = Road(settings.base_url, os.environ.pop(KEY, ""), settings.timeout)
    error = run(Model(settings, road, events), read_prompt())
    events.send("final", status="error" if error else "ok", error=error)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
