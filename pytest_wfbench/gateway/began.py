"""What a gateway was told at the beginning of its sweep: where events go, and where models lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_wfbench.evidence.store import EvidenceError
from pytest_wfbench.evidence.usage_log import read_events
from pytest_wfbench.gateway.api import GatewayRefused, OpenRequest, Route
from pytest_wfbench.gateway.calls import Target
from pytest_wfbench.gateway.cassette import CassetteError, CassetteSet, Script, load_cassettes
from pytest_wfbench.gateway.control import Begin, Provider
from pytest_wfbench.gateway.events import EventLog
from pytest_wfbench.gateway.gate import Gate
from pytest_wfbench.usage.charge import Answering
from pytest_wfbench.usage.prices import BadPrices


@dataclass
class Sweep:
    """The sweep that a gateway serves, by its models: those with scripts, and the plain ones."""

    id: str
    log: EventLog
    cassettes: Mapping[str, CassetteSet]
    plain: frozenset[str]

    def target(self, model: str, request: OpenRequest) -> Target:
        """Return where a session's model leads. Raises GatewayRefused."""
        if (cassettes := self.cassettes.get(model)) is not None:
            try:
                return scripted(cassettes.find(request.labels))
            except CassetteError as error:
                raise GatewayRefused(str(error)) from None
        if model not in self.plain:
            raise GatewayRefused(f"model {model} is not among the sweep's routes")
        provider, _, name = model.partition("/")
        return Target(provider, name)


def begin_sweep(asked: Begin, providers: Mapping[str, Provider], gate: Gate) -> Sweep:
    """Load the scripts, open the event log, and tell the gate its terms. Raises GatewayRefused."""
    try:
        cassettes = {r.model: load_cassettes(r.cassettes) for r in asked.routes if r.cassettes is not None}
        plain = frozenset(route.model for route in asked.routes if route.cassettes is None)
        for route in asked.routes:
            _check_provider(route, providers)
        before = read_events(asked.usage_path.parent).events if asked.terms.has_budget else ()
        log = EventLog(asked.usage_path)
        sweep = Sweep(asked.sweep_id, log, cassettes, plain)
        gate.begin(asked.sweep_id, asked.terms, _answering(sweep), before)
    except (CassetteError, EvidenceError, BadPrices) as error:
        raise GatewayRefused(str(error)) from None
    except OSError as error:
        raise GatewayRefused(f"{asked.usage_path}: cannot be written: {error}") from None
    return sweep


def scripted(script: Script) -> Target:
    """Return the way to a script."""
    return Target(script.cassette.provider, script.cassette.model, script)


def _answering(sweep: Sweep) -> dict[str, tuple[Answering, ...]]:
    """Return who may answer each requested model."""
    plain = {model: (Answering(*model.split("/", 1)),) for model in sweep.plain}
    played = {
        model: tuple({Answering(s.cassette.provider, s.cassette.model): None for s in cassettes.scripts})
        for model, cassettes in sweep.cassettes.items()
    }
    return plain | played


def _check_provider(route: Route, providers: Mapping[str, Provider]) -> None:
    provider, slash, name = route.model.partition("/")
    if route.cassettes is None and not (slash and name and provider in providers):
        known = ", ".join(sorted(providers)) or "none"
        raise GatewayRefused(f"model {route.model}: no such provider here (with a key: {known})")
