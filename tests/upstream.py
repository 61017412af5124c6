"""A model on this machine, alone or behind a team's own LiteLLM proxy: its ledger says what it was asked and billed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_wfbench.gateway.answers.base import Answer, Asked, ToolUse
from pytest_wfbench.gateway.conversation import read_conversation, tool_id
from pytest_wfbench.gateway.replay import FORMS
from pytest_wfbench.gateway.reported import Reported
from pytest_wfbench.sweep.preflight import PROMPT
from pytest_wfbench.wires import ANTHROPIC, CHAT, RESPONSES
from tests.serving import Request, Response, serve

WIRES = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": ANTHROPIC}
WORK = "echo done > a.txt"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
BOOT_SECONDS = 120


@dataclass(frozen=True)
class Shell:
    """An agent's tool that takes a command, what it is told after the work, and what else the tool wants."""

    agent: str
    argument: str
    then: tuple[str, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)


SHELLS = {
    "bash": Shell("mini", "command", (SUBMIT,)),
    "Bash": Shell("claude-code", "command", (), {"description": "Work"}),
    "exec_command": Shell("codex", "cmd"),
}
MASTER, VIRTUAL = "sk-master-0123456789abcdef", "sk-virtual-0123456789abcdef"
PROVIDER_KEY = "sk-scripted-0123456789abcdef"
CONFIG = """\
model_list:
  - model_name: team-model
    litellm_params: {{model: openai/scripted, api_base: "{url}/v1", api_key: {key}, max_retries: 0}}
litellm_settings: {{num_retries: 0, drop_params: true}}
router_settings: {{num_retries: 0, disable_cooldowns: true}}
general_settings:
  master_key: {master}
  custom_auth: team_auth.authorise
"""
# What a database of virtual keys would say: one key is for one model.
AUTH = f"""\
from litellm.proxy._types import ProxyException, UserAPIKeyAuth

MODELS = {{"{MASTER}": [], "{VIRTUAL}": ["team-model"]}}


async def authorise(request, api_key):
    key = api_key.removeprefix("Bearer ")
    if key not in MODELS:
        raise ProxyException("Authentication Error, Invalid proxy server token passed", "auth_error", "key", 401)
    return UserAPIKeyAuth(api_key=key, models=MODELS[key])
"""


@dataclass(frozen=True)
class Billed:
    """One request, as the model bills it. ``who`` asked: ``preflight``, or the agent by the name of its shell."""

    who: str
    wire: str
    streamed: bool
    usage: Reported
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        """What was asked for."""
        return str(self.body["model"])


@dataclass
class Model:
    """Speaks every format, and does a task by one command, ``work``. ``name``: what it answers as, if not as asked."""

    work: str
    name: str
    url: str = ""
    ledger: list[Billed] = field(default_factory=list)

    def bill(self, who: str, wire: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Reported:
        """Every request is billed differently; Anthropic's format has no tokens of reasoning."""
        number = len(self.ledger) + 1
        used = Reported(
            ordinary_input=100 + number,
            cache_read_input=3 * number,
            cache_write_input=5 if wire == ANTHROPIC else 0,
            output=7 + number,
            reasoning_output=None if wire == ANTHROPIC else number % 5,
        )
        self.ledger.append(Billed(who, wire, body.get("stream") is True, used, body, headers))
        return used

    def answer(self, request: Request) -> Response:
        body = json.loads(request.body)
        wire = WIRES[request.path]
        shell = _shell(body)
        who = "preflight" if PROMPT in json.dumps(body) else SHELLS[shell].agent if shell else "side"
        used = self.bill(who, wire, body, request.headers)
        form = FORMS[wire]
        answer = _answer(self, body, wire, shell if who != "preflight" else "", used)
        asked = Asked(tuple(tool.get("function", tool) for tool in body.get("tools") or ()))
        if body.get("stream"):
            return Response(b"".join(form.stream(answer, asked)), "text/event-stream")
        return Response(json.dumps(form.whole(answer, asked)).encode())


def _shell(body: dict[str, Any]) -> str:
    names = [tool.get("function", tool).get("name", "") for tool in body.get("tools") or ()]
    return next((name for name in names if name in SHELLS), "")


def _answer(model: Model, body: dict[str, Any], wire: str, shell: str, used: Reported) -> Answer:
    turn, name = read_conversation(wire, body).turns, model.name or body["model"]
    tool = SHELLS.get(shell)
    commands = (model.work, *tool.then) if tool else ()
    if tool is None or turn >= len(commands):
        return Answer(str(turn), name, 1, "It is done.", (), used, "end_turn")
    given = {tool.argument: commands[turn], **tool.more}
    call = ToolUse(tool_id(FORMS[wire].tool_prefix, turn, 0, "x"), shell, given)
    return Answer(str(turn), name, 1, "Working.", (call,), used, "tool_use")


@contextmanager
def scripted_model(work: str = WORK, name: str = "scripted-2026") -> Iterator[Model]:
    """Serve the model."""
    made = Model(work, name)
    with serve(made.answer, protocol="HTTP/1.1") as made.url:
        yield made


@contextmanager
def private_proxy(directory: Path, model: Model) -> Iterator[str]:
    """Run a real LiteLLM proxy with a configuration and keys of its own; yield its root."""
    (directory / "config.yaml").write_text(CONFIG.format(url=model.url, key=PROVIDER_KEY, master=MASTER))
    (directory / "team_auth.py").write_text(AUTH)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "CONFIG_FILE_PATH": str(directory / "config.yaml"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
        "LITELLM_TELEMETRY": "False",
        "NO_DOCS": "True",
        "DISABLE_ADMIN_UI": "True",
        "HF_HUB_OFFLINE": "1",
    }
    argv = [sys.executable, "-m", "uvicorn", "litellm.proxy.proxy_server:app", "--host=127.0.0.1", f"--port={port}"]
    with (directory / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            argv, cwd=directory, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _await(f"http://127.0.0.1:{port}/health/liveliness", process, directory / "proxy.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the team's proxy does not answer: {log.read_text()[-3000:]}")
