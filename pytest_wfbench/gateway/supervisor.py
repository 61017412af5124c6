"""Starts the gateway's process and does not let it outlive the caller."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self

from pydantic import Field

from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.gateway.api import Event, GatewayLost, Message
from pytest_wfbench.gateway.client import Gateway, GatewayAddress
from pytest_wfbench.gateway.control import Boot, Provider, Question
from pytest_wfbench.sandbox.identity import Identity, choose_identity, runtime_directory

READY_SECONDS = 90.0
LISTEN_SECONDS = 30.0
END_SECONDS = 15.0
POLL = 0.05
LOG_TAIL = 4000
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")


class GatewayConfig(Message):
    """What must be known at the start: the providers that may be reached, with their keys.

    Models are named later, by ``begin``: LiteLLM is configured for any model of its providers, and doors and tap hold
    the allow-lists. With ``proxy`` false LiteLLM is left out, for work on the tap alone.
    """

    providers: tuple[Provider, ...] = Field(default=(), repr=False)
    proxy: bool = True


class RunningGateway(Gateway):
    """A gateway this process started. It ends with ``stop``, or when this process does, however that comes."""

    def __init__(
        self, address: GatewayAddress, process: subprocess.Popen[bytes], log: IO[bytes], held: ExitStack
    ) -> None:
        super().__init__(address)
        self._process, self._log, self._held = process, log, held

    @property
    def pid(self) -> int:
        """The gateway's process, LiteLLM's parent."""
        return self._process.pid

    def wait_ready(self, timeout: float = READY_SECONDS) -> None:
        """Wait until LiteLLM answers.

        Raises:
            GatewayLost: when it ends or does not answer in ``timeout`` seconds; the message ends with the log's tail.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            health = self.status()
            if health.failed is not None:
                raise GatewayLost(health.failed)
            if health.ready:
                return
            time.sleep(POLL)
        raise GatewayLost(f"the gateway was not ready after {timeout:g} s: {self.log_tail()}")

    def _ask(self, question: Question) -> Any:
        """Ask, once the process listens: it takes half a second to start."""
        deadline = time.monotonic() + LISTEN_SECONDS
        while not self.address.socket.exists() and time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise GatewayLost(f"the gateway ended with status {self._process.returncode}: {self.log_tail()}")
            time.sleep(POLL)
        try:
            return super()._ask(question)
        except GatewayLost as error:
            raise GatewayLost(f"{error}\n{self.log_tail()}".rstrip()) from error

    def self_test(self) -> Event:
        """Send one request over the whole road, LiteLLM and its callback included. Raises GatewayLost."""
        from pytest_wfbench.gateway.selftest import self_test

        return self_test(self)

    def log_tail(self) -> str:
        """Return the end of what the gateway's process said."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - LOG_TAIL))
        return self._log.read().decode(errors="replace")

    def stop(self) -> tuple[OpenCall, ...]:
        """End it and return the calls that never ended. Does not raise: a gateway that is gone is stopped."""
        try:
            return self.shut_down() if self._process.poll() is None else ()
        except GatewayLost:
            return ()
        finally:
            self._end()

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_gateway(config: GatewayConfig, identity: Identity | None = None) -> RunningGateway:
    """Start the gateway and return at once; LiteLLM takes seconds to boot (``wait_ready``).

    Call it from the main thread: the kernel ends the gateway when the thread that started it does.

    Args:
        config: providers and their keys.
        identity: whom sandboxed processes run as; doors belong to it.
    """
    owner = identity or choose_identity()
    held = ExitStack()
    directory = held.enter_context(runtime_directory(owner))
    log = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 -- the stack closes it
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_wfbench.gateway.server"],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env=_environment(),
        cwd=directory,
        start_new_session=True,
    )
    boot = Boot(
        directory=directory,
        token=secrets.token_hex(24),
        parent=os.getpid(),
        owner=(owner.uid, owner.gid) if owner.foreign else None,
        providers=config.providers,
        proxy=config.proxy,
    )
    assert process.stdin is not None
    process.stdin.write(boot.model_dump_json().encode() + b"\n")
    process.stdin.flush()
    address = GatewayAddress(socket=directory / "p" / "control", token=boot.token)
    return RunningGateway(address, process, log, held)


def _environment() -> dict[str, str]:
    """Return an environment without secrets: those travel by pipe."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    proxies = {name: value for name, value in os.environ.items() if name.lower() in PROXIES}
    return {**kept, **proxies, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONSAFEPATH": "1"}
