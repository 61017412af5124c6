"""Starts the gateway's process and does not let it outlive the caller."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from pydantic import Field

from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.gateway.api import Event, GatewayLost, Message
from pytest_wfbench.gateway.client import Gateway, GatewayAddress
from pytest_wfbench.gateway.control import Boot, Provider, Question
from pytest_wfbench.sandbox.identity import Identity, choose_identity, runtime_directory
from pytest_wfbench.sandbox.process import start_process

READY_SECONDS = 90.0
LISTEN_SECONDS = 30.0
END_SECONDS = 15.0
POLL = 0.05
LOG_TAIL = 4000
REAP_SECONDS = 1.0
CONTROL, SUCCESSOR = "control", "control.next"
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
LOOPBACK = "localhost,127.0.0.1,::1"


class GatewayConfig(Message):
    """What must be known at the start: the providers that may be reached, with their keys.

    Models are named later, by ``begin``: LiteLLM is configured for any model of its providers, and doors and tap hold
    the allow-lists. With ``proxy`` false LiteLLM is left out, for work on the tap alone.
    """

    providers: tuple[Provider, ...] = Field(default=(), repr=False)
    proxy: bool = True


@dataclass(frozen=True)
class Site:
    """Where a gateway lives, and what it is told: all that outlives its process. ``held`` gives it back."""

    config: GatewayConfig
    owner: Identity
    directory: Path
    token: str
    log: IO[bytes]
    held: ExitStack

    def address(self, control: str) -> GatewayAddress:
        """Return the way to a control socket."""
        return GatewayAddress(socket=self.directory / "p" / control, token=self.token)

    def boot(self, control: str) -> Boot:
        """Return what a process is told at its start."""
        return Boot(
            directory=self.directory,
            token=self.token,
            parent=os.getpid(),
            owner=(self.owner.uid, self.owner.gid) if self.owner.foreign else None,
            providers=self.config.providers,
            proxy=self.config.proxy,
            control=control,
        )


class RunningGateway(Gateway):
    """A gateway this process started. It ends with ``stop``, or when this process does, however that comes."""

    def __init__(self, site: Site, control: str = CONTROL) -> None:
        """Start the process; not even its control socket is there yet. Raises OSError."""
        super().__init__(site.address(control))
        self._site = site
        self._process = start_process(
            (sys.executable, "-m", "pytest_wfbench.gateway.server"),
            env=_environment(),
            cwd=site.directory,
            stdin=subprocess.PIPE,
            stdout=site.log,
            stderr=site.log,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(site.boot(control).model_dump_json().encode() + b"\n")
        self._process.stdin.flush()

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
        log = self._site.log
        if log.closed:
            return ""
        end = os.fstat(log.fileno()).st_size
        return os.pread(log.fileno(), LOG_TAIL, max(0, end - LOG_TAIL)).decode(errors="replace")

    def successor(self) -> RunningGateway:
        """Start another one in this one's place, which has ended: same directory, same token, new keys.

        Nobody else reaches it before ``take_over``. It ends with the thread that calls this. Raises OSError.
        """
        return RunningGateway(self._site, SUCCESSOR)

    def take_over(self) -> None:
        """Be found where the first one was. Raises OSError."""
        public = self._site.address(CONTROL)
        self.address.socket.rename(public.socket)
        self.address = public

    def stop(self, replaced: bool = False) -> tuple[OpenCall, ...]:
        """End it and return the calls that never ended. Does not raise: a gateway that is gone is stopped.

        With ``replaced`` its place is kept for its successor.
        """
        try:
            return self.shut_down(replaced) if self._process.poll() is None else ()
        except GatewayLost:
            return ()
        finally:
            self._end()
            if not replaced:
                self._site.held.close()

    def kill(self) -> None:
        """End it at once, whatever it does. Harmless where it has ended."""
        self._process.kill()

    def end_cause(self) -> str | None:
        """Say how its process ended, or none while it runs; a process that was just killed is waited for."""
        try:
            status = self._process.wait(REAP_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"the gateway's process ended by {how}"

    def _end(self) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

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
    return RunningGateway(Site(config, owner, directory, secrets.token_hex(24), log, held))


def _environment() -> dict[str, str]:
    """Return an environment without secrets: those travel by pipe."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    proxies = {name: value for name, value in os.environ.items() if name.lower() in PROXIES}
    if proxies:
        # A provider on this machine is not behind the way out.
        direct = [os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), LOOPBACK]
        proxies["no_proxy"] = ",".join(filter(None, direct))
    return {**kept, **proxies, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONSAFEPATH": "1"}
