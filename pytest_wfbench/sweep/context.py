"""What every cell of a sweep shares, as values."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pytest_wfbench.agents.base import Agent, Runtime
from pytest_wfbench.evidence.redact import Redactor
from pytest_wfbench.files import user_path
from pytest_wfbench.gateway.client import GatewayAddress
from pytest_wfbench.matrix.bindings import TaskBinding
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.matrix.task import Limits
from pytest_wfbench.sandbox.spec import Bounds
from pytest_wfbench.sweep.outage import OutageGuard
from pytest_wfbench.sweep.plan import Plan
from pytest_wfbench.usage.prices import PriceTable

# The short ones are words of their own only: ``GITHUB_PAT``, but not ``COMPAT``, and not the shell's ``PWD``.
SECRET_NAME = re.compile(
    r"(?:KEYS?|KEY_?ID|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIES?|\ASSHPASS"
    r"|(?:\A|_)(?:PAT|PASS|AUTH|CREDS?)|_PWD)(?:_?[0-9]{1,3})?\Z",
    re.IGNORECASE,
)


class Seat(BaseModel):
    """What a process needs to run cells of a sweep; it travels to workers as JSON.

    ``results`` is the sweep's results directory, ``scratch`` where cells have their upper layers, ``runtime`` a
    directory in it for what the processes of the sweep tell each other. What a killed sweep leaves of them the next
    one removes.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    plan: Plan
    sweep_id: str
    results: Path
    runtime: Path
    scratch: Path
    gateway: GatewayAddress | None


@dataclass(frozen=True)
class SweepContext:
    """A sweep as one process sees it."""

    seat: Seat
    host: str
    redactor: Redactor

    @property
    def plan(self) -> Plan:
        """What is to be run."""
        return self.seat.plan

    @property
    def results(self) -> Path:
        """The sweep's results directory."""
        return self.seat.results

    @cached_property
    def prices(self) -> PriceTable:
        """What tokens cost."""
        named = self.plan.options.prices
        return PriceTable.load(user_path(named, self.plan.directory) if named else None)

    @cached_property
    def guard(self) -> OutageGuard:
        """The outage stop that all processes of the sweep share."""
        return OutageGuard(self.seat.runtime, self.plan.options.outage_limit)

    def binding(self, cell: Cell) -> TaskBinding:
        """Return the digests of a cell's task."""
        return self.plan.binding(cell.task.id, cell.variation)


def take_seat(seat: Seat) -> SweepContext:
    """Return the context of this process: the seat, the host's name, and the secrets of its environment to redact."""
    return SweepContext(seat, socket.gethostname(), Redactor(secrets_of(os.environ)))


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Return the values of the variables whose names say that they hold a secret."""
    return [value for name, value in environ.items() if SECRET_NAME.search(name)]


@dataclass(frozen=True)
class BoundAgent:
    """An agent found on this machine, with the model of one subject."""

    adapter: Agent
    runtime: Runtime
    subject: Subject


def bounds_of(limits: Limits) -> Bounds:
    """Return a task's limits as a sandbox takes them."""
    return Bounds(limits.memory, limits.processes, limits.file_size, limits.disk, limits.inodes)
