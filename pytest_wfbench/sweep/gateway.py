"""The sweep's gateway: started early, with the keys of just the providers that are named, and once more if lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from pytest_wfbench.evidence.manifest import OpenCall
from pytest_wfbench.gateway.api import GatewayLost, GatewayRefused
from pytest_wfbench.gateway.client import GatewayAddress
from pytest_wfbench.gateway.control import Books
from pytest_wfbench.gateway.providers import providers_of
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.sweep.budgets import terms_of
from pytest_wfbench.sweep.judge import judge_environment
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.sweep.recording import record_directory

READY_SECONDS = 120.0
# How often a gateway that still has its connections is asked whether it is well.
ASK_SECONDS = 20.0
LOSSES = 2


class SweepGateway:
    """A gateway that is proven before the first cell, then watched. Lost once it is started again, twice it is not.

    A thread of its own waits for the loss. It is also the parent that the second gateway dies with, so it stays until
    that one has ended.
    """

    def __init__(self, plan: Plan, give_up: Callable[[str], None]) -> None:
        """Start it and return at once: it boots while pytest collects.

        Args:
            plan: names models and providers.
            give_up: called, from another thread, with the reason why no further cell can have a model.
        """
        forwarded = [route.model for route in plan.routes if route.cassettes is None]
        named = providers_of(forwarded, judge_environment(plan.options, os.environ))
        self._running = start_gateway(GatewayConfig(providers=tuple(named)))
        self._routes, self._give_up = plan.routes, give_up
        self._record = record_directory(plan.options, plan.directory)
        self._terms = terms_of(plan.options, plan.directory)
        self._lock, self._closing = threading.Lock(), False
        self._open_calls: list[OpenCall] = []
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> GatewayAddress:
        """Where cells find it, also after it was started again."""
        return self._running.address

    def prove(self, sweep_id: str, usage: Path) -> None:
        """Begin the sweep, prove the whole road, and watch it from now on. Raises GatewayLost, GatewayRefused."""
        self._prove(self._running, sweep_id, usage)
        self._thread = threading.Thread(target=self._watch, args=(sweep_id, usage), name="wfbench-gateway", daemon=True)
        self._thread.start()

    def _prove(self, gateway: RunningGateway, sweep_id: str, usage: Path) -> None:
        gateway.wait_ready(READY_SECONDS)
        gateway.begin(sweep_id, usage, self._routes, self._record, self._terms)
        gateway.self_test()

    def books(self) -> Books | None:
        """Return what was spent and waited for, none where the gateway is lost. Ask before the end."""
        try:
            return self._running.account()
        except GatewayLost:
            return None

    def stop(self) -> tuple[OpenCall, ...]:
        """End it, and the watch; return the calls that never ended, of all it was. Asked again, it does nothing."""
        with self._lock:
            self._closing = True
            self._open_calls += self._running.stop()
        if self._thread is not None:
            self._thread.join()
        return tuple(self._open_calls)

    def _watch(self, sweep_id: str, usage: Path) -> None:
        for loss in range(1, LOSSES + 1):
            cause = _await_loss(self._running)
            if self._closing:
                return
            if loss == LOSSES:
                self._end(f"the gateway was lost again after it had been started a second time: {cause}")
            elif not self._restart(sweep_id, usage, cause):
                return

    def _restart(self, sweep_id: str, usage: Path, cause: str) -> bool:
        try:
            with self._lock:
                if self._closing:
                    return False
                self._open_calls += self._running.stop(replaced=True)
                self._running = self._running.successor()
            self._prove(self._running, sweep_id, usage)
            with self._lock:
                if not self._closing:
                    self._running.take_over()
        except (GatewayLost, GatewayRefused, OSError) as error:
            if not self._closing:
                self._end(f"the gateway was lost and could not be started again: {cause}; {error}")
            return False
        return True

    def _end(self, cause: str) -> None:
        """No more cells; then the gateway goes, for this thread, its parent, is about to end."""
        self._give_up(cause)
        with self._lock:
            self._open_calls += self._running.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _await_loss(gateway: RunningGateway) -> str:
    """Wait until a gateway is lost, and say why. One that holds its connections but answers nothing is killed."""
    try:
        with gateway.watch() as watching:
            while not watching.wait(ASK_SECONDS):
                _ask_twice(gateway)
            cause = watching.cause() or "it went without a word"
    except GatewayLost as error:
        cause = str(error)
        if (ended := gateway.end_cause()) is None:
            gateway.kill()
            return cause
        return ended
    return gateway.end_cause() or cause


def _ask_twice(gateway: RunningGateway) -> None:
    """Ask how it is; a busy machine may keep it from answering once."""
    try:
        gateway.status()
    except GatewayLost:
        gateway.status()
