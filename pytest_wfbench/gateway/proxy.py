"""LiteLLM's process: its configuration, its start and its end."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession

from pytest_wfbench.gateway.http import unix_client
from pytest_wfbench.gateway.providers import BY_NAME, KNOWN, KnownProvider
from pytest_wfbench.wires import ANTHROPIC, RESPONSES

READY_PATH = "http://proxy/health/readiness"
POLL_SECONDS = 0.1
END_SECONDS = 3.0
LOG_TAIL = 4000
TAP_URL = "http://tap"
# Those that LiteLLM knows by their own names, and what marks the entry for clients of Anthropic's format.
OWN, MESSAGES = frozenset({"anthropic", "openai"}), ".messages"
HOOKS_MODULE = "wfbench_hooks"
SETTINGS: Mapping[str, str] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_RUST": "False",
    # Door and tap redact; it would look through a request again for each line that it logs of it, for minutes.
    "LITELLM_DISABLE_REDACT_SECRETS": "true",
    "LITELLM_USE_CHAT_COMPLETIONS_URL_FOR_ANTHROPIC_MESSAGES": "1",
    "DISABLE_AIOHTTP_TRUST_ENV": "True",
    "HF_HUB_OFFLINE": "1",
    "NO_DOCS": "True",
    "DISABLE_ADMIN_UI": "True",
    "NO_PROXY": "*",
}


def configuration() -> dict[str, Any]:
    """Return LiteLLM's configuration: any model of the known providers, all at the tap, one attempt each.

    It names no model: doors and tap hold the allow-lists, so that LiteLLM can boot before the cases are read.
    """
    return {
        "model_list": [deployment for known in KNOWN for deployment in _deployments(known)],
        "litellm_settings": {
            "num_retries": 0,
            "request_timeout": 3600,
            "drop_params": True,
            # To count tokens of some models it would ask the network for their tokenizer, and stand still meanwhile.
            "disable_hf_tokenizer_download": True,
            "callbacks": [f"{HOOKS_MODULE}.hooks"],
        },
        "router_settings": {"num_retries": 0, "max_fallbacks": 0, "disable_cooldowns": True},
        "general_settings": {
            "master_key": "os.environ/LITELLM_MASTER_KEY",
            "always_include_stream_usage": True,
            "disable_spend_logs": True,
        },
    }


def litellm_name(provider: str, model: str, wire: str) -> str:
    """Return how LiteLLM is asked for a provider's model by a client of this wire format."""
    known = BY_NAME[provider]
    apart = wire == ANTHROPIC and ANTHROPIC in known.speaks and provider not in OWN
    return f"{provider}{MESSAGES if apart else ''}/{model}"


def _deployments(known: KnownProvider) -> Iterator[dict[str, Any]]:
    """Yield a provider's entries: what it speaks itself passes untranslated, and keeps all that is the format's own.

    LiteLLM knows how ``anthropic`` and ``openai`` differ from their formats; of others it is told the format alone.
    """
    if known.name in OWN:
        yield _deployment(known.name, known.name, "" if known.speaks == {ANTHROPIC} else "/v1")
        return
    chat_alone = {} if RESPONSES in known.speaks else {"use_chat_completions_api": True}
    yield _deployment(known.name, "litellm_proxy", "/v1", **chat_alone)
    if ANTHROPIC in known.speaks:
        yield _deployment(known.name + MESSAGES, "anthropic", "")


def _deployment(group: str, provider: str, path: str, **more: Any) -> dict[str, Any]:
    return {
        "model_name": f"{group}/*",
        "litellm_params": {
            "model": f"{provider}/*",
            "api_base": TAP_URL + path,
            "api_key": "os.environ/WFBENCH_TAP_SECRET",
            "max_retries": 0,
            **more,
        },
    }


@dataclass
class Proxy:
    """A LiteLLM process in a private directory: ``key`` is what it takes of doors, ``tap_secret`` what it gives."""

    directory: Path
    key: str = field(default_factory=lambda: f"sk-{secrets.token_hex(24)}", repr=False)
    tap_secret: str = field(default_factory=lambda: f"sk-{secrets.token_hex(24)}", repr=False)
    process: asyncio.subprocess.Process | None = None
    ready: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.directory / "proxy"

    @property
    def tap_socket(self) -> Path:
        """Where it sends everything."""
        return self.directory / "tap"

    def log_tail(self) -> str:
        """Return the end of what it said."""
        try:
            text = (self.directory / "proxy.log").read_text(errors="replace")
        except OSError:
            return ""
        return text[-LOG_TAIL:]

    @property
    def failed(self) -> str | None:
        """Why it no longer runs, or none."""
        if self.process is None or self.process.returncode is None:
            return None
        return f"LiteLLM ended with status {self.process.returncode}: {self.log_tail()}"

    async def start(self) -> None:
        """Start the process; ``wait_ready`` says when it answers."""
        (self.directory / "config.yaml").write_text(json.dumps(configuration(), indent=1))
        shutil.copyfile(Path(__file__).with_name("hooks.py"), self.directory / f"{HOOKS_MODULE}.py")
        with (self.directory / "proxy.log").open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "pytest_wfbench.gateway.proxy_main",
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_plain_environment(self.directory),
                cwd=self.directory,
            )
        told = {"environment": self._environment(), "socket": str(self.socket), "parent": os.getpid()}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told).encode() + b"\n")
        await self.process.stdin.drain()

    def _environment(self) -> dict[str, str]:
        return {
            **SETTINGS,
            "CONFIG_FILE_PATH": str(self.directory / "config.yaml"),
            "LITELLM_MASTER_KEY": self.key,
            "WFBENCH_TAP": str(self.tap_socket),
            "WFBENCH_TAP_SECRET": self.tap_secret,
        }

    async def watch(self) -> None:
        """Poll until it answers; then wait for its end, and say so by ``gone``."""
        async with unix_client(self.socket) as client:
            while not self.ready and self.failed is None:
                self.ready = await _answers(client)
                await asyncio.sleep(POLL_SECONDS)
        if self.process is not None:
            await self.process.wait()
            self.gone.set()

    async def stop(self) -> None:
        """End it: there is nothing in it that is worth a grace period once the doors are closed."""
        if self.process is None or self.process.returncode is not None:
            return
        self.process.kill()
        await asyncio.wait_for(self.process.wait(), END_SECONDS)


async def _answers(client: ClientSession) -> bool:
    try:
        async with client.get(READY_PATH) as response:
            return response.status == 200
    except (ClientError, OSError):
        return False


def _plain_environment(home: Path) -> dict[str, str]:
    """Return an environment with nothing of the caller's but where Python and this package are found."""
    package = str(Path(__file__).parents[2])
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONPATH": package, "PYTHONSAFEPATH": "1"}
