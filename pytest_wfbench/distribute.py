"""xdist: what a worker is given, and how it ends with its controller."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_wfbench.sweep.context import Seat, SweepContext, take_seat

PR_SET_PDEATHSIG = 1
PATIENCE = 1.0


def for_worker(context: SweepContext) -> dict[str, Any]:
    """Return the seat as plain JSON, with the controller's process id."""
    return {"seat": context.seat.model_dump_json(), "controller": os.getpid()}


def end_soon(nodes: Iterable[Any]) -> None:
    """Let xdist wait a second, not ten, for workers whose cells have just lost their point; their sandboxes die too."""
    for node in nodes:
        node.nodemanager.EXIT_TIMEOUT = PATIENCE


def join_sweep(given: dict[str, Any]) -> SweepContext:
    """Take a seat in the controller's sweep, and die when it dies.

    Execnet alone can leave a worker behind for a quarter of a minute; the kernel's signal does not. The parent is
    looked at afterwards, since it may have died before the signal was asked for.
    """
    if (
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0
        or os.getppid() != given["controller"]
    ):
        raise pytest.UsageError("wfbench: the controller of this worker is gone")
    return take_seat(Seat.model_validate_json(given["seat"]))
