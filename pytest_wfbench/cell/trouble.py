"""What can go wrong with a cell that is nobody's fault but the harness's, its machine's or its gateway's."""

from __future__ import annotations

from collections.abc import Callable

from pytest_wfbench.gateway.api import GatewayLost, GatewayRefused
from pytest_wfbench.mcp.host import ServerFailed
from pytest_wfbench.sandbox.binary import BubblewrapMissing
from pytest_wfbench.sandbox.removal import CleanupFailed
from pytest_wfbench.scoring.oracle import OracleTampered
from pytest_wfbench.workspace.copying import CopyFailed
from pytest_wfbench.workspace.program import ProgramFailed
from pytest_wfbench.workspace.startstate import SetupFailed

# Their messages say all there is; anything else is a fault of the code, and its traceback is shown.
TROUBLE = (
    OSError, GatewayLost, GatewayRefused, BubblewrapMissing, CleanupFailed, OracleTampered, CopyFailed, ProgramFailed,
    ServerFailed, SetupFailed,
)  # fmt: skip
KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (GatewayLost, "gateway-lost"),
    (CleanupFailed, "cleanup-failure"),
)


def kind_of(error: BaseException | None) -> str:
    """Return the kind of a cell that an exception ended: all of them are the harness's own fault."""
    return next((kind for cause, kind in KINDS if isinstance(error, cause)), "infra-error")


def attempt(step: Callable[[], None]) -> Exception | None:
    """Do something, and return the trouble it met rather than raise it."""
    try:
        step()
    except TROUBLE as error:
        return error
    return None
