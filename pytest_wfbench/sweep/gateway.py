"""The sweep's gateway: started early, with the keys of just the providers that the subjects name."""

from __future__ import annotations

import os

from pytest_wfbench.gateway.providers import providers_of
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, start_gateway
from pytest_wfbench.sweep.plan import Plan


def launch_gateway(plan: Plan) -> RunningGateway:
    """Start the gateway and return at once; it boots while pytest collects."""
    forwarded = [route.model for route in plan.routes if route.cassettes is None]
    return start_gateway(GatewayConfig(providers=tuple(providers_of(forwarded, os.environ))))
