"""The gateway's process: control socket, doors and tap, with LiteLLM as its child."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.gateway.api import Door, GatewayLost, GatewayRefused, OpenRequest, SessionUsage
from pytest_wfbench.gateway.began import Sweep, begin_sweep, scripted
from pytest_wfbench.gateway.calls import Calls, Session, Target
from pytest_wfbench.gateway.control import (
    Account,
    Begin,
    Books,
    Boot,
    Close,
    Health,
    Open,
    Provider,
    Seen,
    Status,
    Stop,
    Totals,
    Watch,
)
from pytest_wfbench.gateway.death import die_with, first_line, when_input_ends
from pytest_wfbench.gateway.desk import Desk
from pytest_wfbench.gateway.door import DoorKeeper
from pytest_wfbench.gateway.forward import Forward
from pytest_wfbench.gateway.gate import Gate
from pytest_wfbench.gateway.http import CONNECTIONS, Listener, listen, raise_descriptor_limit, unix_client
from pytest_wfbench.gateway.keys import Claim, mint
from pytest_wfbench.gateway.proxy import Proxy
from pytest_wfbench.gateway.record import Recording
from pytest_wfbench.gateway.replay import Replay
from pytest_wfbench.gateway.selftest import SELF_TEST_MODEL, SELF_TEST_SCRIPT
from pytest_wfbench.gateway.tap import Tap

DRAIN_SECONDS = 10.0
HANDLER_SECONDS = 0.5
POLL_SECONDS = 0.05
# After this long without its controller the process goes, tidy or not.
END_SECONDS = 3.0


class OpenDoor(NamedTuple):
    """A session and the socket it listens on."""

    session: Session
    listener: Listener


@dataclass
class Gateway:
    """Everything that runs in this process."""

    boot: Boot
    proxy: Proxy
    keeper: DoorKeeper
    providers: Mapping[str, Provider]
    signing_key: bytes
    recording: Recording
    sweep: Sweep | None = None
    doors: dict[Path, OpenDoor] = field(default_factory=dict)
    closing: set[str] = field(default_factory=set)
    issued: set[str] = field(default_factory=set)
    lost_calls: list[OpenCall] = field(default_factory=list)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    replaced: bool = False

    async def answer(self, question: object) -> Any:
        """Do what was asked. Raises GatewayRefused or GatewayLost."""
        return await self._answers()[type(question)](question)

    def _answers(self) -> Mapping[type, Callable[[Any], Awaitable[Any]]]:
        return {
            Begin: self.begin,
            Open: self.open,
            Close: self.close,
            Totals: self.totals,
            Account: self.account,
            Status: self.status,
            Watch: self.watch,
            Stop: self.stop,
        }

    async def begin(self, asked: Begin) -> None:
        """Load the scripts and open the event log, once."""
        if self.sweep is not None:
            raise GatewayRefused("a sweep has begun already: start a gateway for each sweep")
        sweep = begin_sweep(asked, self.providers, self.keeper.gate)
        try:
            self.recording.begin(asked.record)
        except OSError as error:
            raise GatewayRefused(f"{error.filename or asked.record}: cannot be written: {error}") from None
        self.sweep = sweep

    async def open(self, asked: Open) -> Door:
        """Give a session its own socket and key."""
        request = asked.request
        if self.proxy.failed:
            raise GatewayLost(self.proxy.failed)
        if self.sweep is not None and (failed := self.sweep.log.failed or self.recording.failed):
            raise GatewayLost(failed)
        targets = {model: self._target(model, request) for model in request.models}
        hidden = set(request.models) == {SELF_TEST_MODEL}
        name = secrets.token_hex(6)
        expires = int(time.monotonic() + request.seconds) + 1
        claim = Claim(request.cell_id, request.labels.session, name, request.models, expires)
        sink = None if hidden or self.sweep is None else self.sweep.log
        sweep_id = self.sweep.id if self.sweep else "none"
        session = Session(request, claim, sweep_id, targets, sink, self.keeper.gate.ledger)
        path = self.boot.directory / "d" / name
        handler = partial(self.keeper.handle, session)
        listener = await listen(path, handler, 0o600, self.boot.owner, CONNECTIONS)
        self.doors[path] = OpenDoor(session, listener)
        self.issued.add(name)
        key = mint(self.signing_key, claim)
        await asyncio.to_thread(self.recording.open, session, key)
        return Door(cell_id=request.cell_id, session=request.labels.session, socket=path, key=key)

    def _target(self, model: str, request: OpenRequest) -> Target:
        if model == SELF_TEST_MODEL:
            return scripted(SELF_TEST_SCRIPT)
        if self.sweep is None:
            raise GatewayRefused("no sweep has begun")
        return self.sweep.target(model, request)

    async def close(self, asked: Close) -> SessionUsage:
        """Refuse new calls, drain the open ones, and take the socket away."""
        session, listener = self._known(asked.door)
        del self.doors[asked.door]
        self.closing.add(session.claim.door)
        try:
            return await self._close(session, listener)
        finally:
            self.closing.discard(session.claim.door)

    async def _close(self, session: Session, listener: Listener) -> SessionUsage:
        waiting, standing = any(call.upstream for call in session.calls), session.stall.still
        session.end()
        await session.drain(DRAIN_SECONDS)
        self.lost_calls += session.unfinished()
        open_calls = len(session.open_calls())
        await session.abandon()
        usage = session.usage(open_calls, waiting, standing)
        self.keeper.gate.waited += session.stall.seconds
        await listener.close(HANDLER_SECONDS)
        self.keeper.calls.forget(session)
        self.recording.close(session)
        if session.sink is not None:
            await asyncio.to_thread(session.sink.sync)
        if self.proxy.failed:
            raise GatewayLost(self.proxy.failed)
        return usage

    def _known(self, path: Path) -> OpenDoor:
        """Return an open door. One that this process never opened was another's, which is gone."""
        if self.proxy.failed and path not in self.doors:
            raise GatewayLost(self.proxy.failed)
        if path.name not in self.issued:
            raise GatewayLost("the gateway that had opened the session's door was lost, and this is another one")
        if path not in self.doors:
            raise GatewayRefused("no such door, or closed already")
        return self.doors[path]

    async def totals(self, asked: Totals) -> Seen:
        """Count what passed a door so far."""
        session = self._known(asked.door).session
        return Seen(
            events=len(session.events),
            callbacks=session.callbacks,
            open_calls=len(session.open_calls()),
            counted=session.calls[-1].report.usage if session.calls else None,
        )

    async def account(self, asked: Account) -> Books:
        """Say what was spent and waited for."""
        return self.keeper.gate.books(door.session for door in self.doors.values())

    async def status(self, asked: Status) -> Health:
        """Say how the proxy does."""
        process = self.proxy.process
        return Health(
            ready=self.proxy.ready,
            failed=self.proxy.failed,
            pid=process.pid if process else None,
        )

    async def watch(self, asked: Watch) -> None:
        """Wait until the proxy is lost."""
        await self.proxy.gone.wait()
        raise GatewayLost(self.proxy.failed or "LiteLLM has ended")

    async def stop(self, asked: Stop) -> tuple[OpenCall, ...]:
        """Close what is open, and say which calls never ended."""
        self.replaced = asked.replaced
        await asyncio.gather(*(self.close(Close(door=path)) for path in tuple(self.doors)), return_exceptions=True)
        while self.closing:
            await asyncio.sleep(POLL_SECONDS)
        if self.sweep is not None:
            self.sweep.log.close()
            self.sweep = None
        self.stopping.set()
        return tuple(self.lost_calls)


async def run(boot: Boot) -> bool:
    """Serve until told to stop, or until the controller is gone; return whether another gateway takes its place."""
    private, doors = boot.directory / "p", boot.directory / "d"
    for directory, mode in ((private, 0o700), (doors, 0o711)):
        # What a killed gateway left here is nobody's any more.
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=mode)
    proxy = Proxy(private)
    providers = {provider.name: provider for provider in boot.providers}
    calls, gate, forward, signing_key = Calls(), Gate(), Forward(providers), secrets.token_bytes(32)
    known = [boot.token, proxy.key, proxy.tap_secret, *(provider.key for provider in boot.providers)]
    recording = Recording(tuple(known))
    replay, live = recording.upstream(Replay()), recording.upstream(forward)
    tap = Tap(calls, proxy.tap_secret, replay, live, Redactor(known).text, gate.hear)
    async with unix_client(proxy.socket) as client:
        keeper = DoorKeeper(calls, tap, client, proxy.key, signing_key, gate)
        gateway = Gateway(boot, proxy, keeper, providers, signing_key, recording)
        tap_listener = await listen(proxy.tap_socket, tap.handle)
        control = await Desk(boot.token, gateway.answer).open(private / boot.control)
        try:
            await _serve(gateway, proxy)
        finally:
            control.close()
            await proxy.stop()
            await tap_listener.close(HANDLER_SECONDS)
            await forward.close()
    return gateway.replaced


def _call_in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # The loop has ended already.
        loop.call_soon_threadsafe(call)


async def _serve(gateway: Gateway, proxy: Proxy) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, gateway.stopping.set)
    when_input_ends(partial(_call_in_loop, loop, gateway.stopping.set), END_SECONDS)
    if gateway.boot.proxy:
        await proxy.start()
    watch = asyncio.create_task(proxy.watch())
    await gateway.stopping.wait()
    watch.cancel()


def main() -> None:
    """Read what to do from the first line of standard input, then serve."""
    boot = Boot.model_validate_json(first_line())
    die_with(boot.parent, signal.SIGTERM)
    raise_descriptor_limit()
    replaced = False
    try:
        replaced = asyncio.run(run(boot))
    finally:
        if not replaced:
            shutil.rmtree(boot.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
