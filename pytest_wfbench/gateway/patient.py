"""The gateway as a cell sees it: one that may be lost, and come back."""

from __future__ import annotations

import time
from collections.abc import Callable

from pytest_wfbench.gateway.api import Door, GatewayLost, OpenRequest
from pytest_wfbench.gateway.client import Gateway, GatewayAddress

# Longer than another one may take to be ready: whoever starts it gives up first, and says so.
RETURN_SECONDS = 240.0
POLL = 0.1


class PatientGateway(Gateway):
    """Waits with a session's beginning while a lost gateway is started again, unless the sweep was given up.

    Only the beginning waits: a session that had begun has lost its door with the gateway.
    """

    def __init__(self, address: GatewayAddress, given_up: Callable[[], str | None]) -> None:
        """``given_up`` says why no cell is to start any more, or none."""
        super().__init__(address)
        self._given_up = given_up

    def open(self, request: OpenRequest) -> Door:
        """Open a door. Raises GatewayLost once the gateway will not come back; GatewayRefused."""
        deadline = time.monotonic() + RETURN_SECONDS
        while True:
            try:
                return super().open(request)
            except GatewayLost as error:
                cause = self._given_up()
                if cause is not None:
                    raise GatewayLost(cause) from error
                if time.monotonic() > deadline:
                    raise
            time.sleep(POLL)
