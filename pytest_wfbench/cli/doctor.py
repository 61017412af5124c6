"""``wfbench doctor``: what this machine can do."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import click

from pytest_wfbench.agents.base import AgentUnavailable, Runtime
from pytest_wfbench.agents.registry import get_agent, known_agents
from pytest_wfbench.agents.trial import agent_checks
from pytest_wfbench.cli._exit import FAILED, end, usage_errors
from pytest_wfbench.cli._results import json_option
from pytest_wfbench.sandbox.bubblewrap import make_bubblewrap
from pytest_wfbench.sandbox.identity import BadIdentity, Identity, choose_identity
from pytest_wfbench.sandbox.machine import Check, machine_checks
from pytest_wfbench.sandbox.preflight import checks
from pytest_wfbench.sweep.scratch import scratch_directory
from pytest_wfbench.workspace.ground import survey

_KINDS = {
    "overlay": "overlay: nothing is copied",
    "reflink": "reflink: each is a copy, which shares its bytes with the original until they change",
    "copy": "copy: each is a whole copy, which takes time and space with the size of the repository",
}
_MARKS = {(True, True): "ok  ", (True, False): "ok  ", (False, True): "FAIL", (False, False): "none"}


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Try everything that a cell needs of this machine, and say what to do where it fails.

    What fails but is not needed is marked "none": cells run without overlays, over copies, and without the agents
    that you do not use. Exit status: 0 when cells can run here, 1 when not.

    \b
    Example:
        wfbench doctor
        wfbench doctor --json
    """
    with usage_errors(BadIdentity):
        identity = choose_identity()
    machine = machine_checks(identity)
    if all(check.ok or not check.needed for check in machine):
        machine += _of_sandbox(identity)
    well = all(check.ok or not check.needed for check in machine)
    agents = tuple(_agents(well))
    if as_json:
        shown = {"ok": well, "machine": _plain(machine), "agents": _plain(agents)}
        click.echo(json.dumps(shown, indent=1))
    else:
        for check in (*machine, *agents):
            click.echo(_line(check))
        click.echo("cells can run here" if well else "cells cannot run here")
    end(0 if well else FAILED)


def _of_sandbox(identity: Identity) -> tuple[Check, ...]:
    """Try the sandbox where workspaces will be, and say of which kind they are."""
    with scratch_directory(identity) as scratch:
        found = checks(scratch, identity)
        if any(not check.ok and check.needed for check in found):
            return found
        kind = survey(make_bubblewrap(identity), scratch, identity).kind
    return (*found, Check("workspaces", True, _KINDS[kind]))


def _agents(well: bool) -> Iterator[Check]:
    """Yield what is known of each agent that can be looked for without a script's path."""
    found: list[tuple[str, Runtime]] = []
    for name in known_agents():
        if not get_agent(name).uses_model:
            continue
        try:
            found.append((f"agent {name}", get_agent(name).find("replay/demo", Path.cwd())))
        except AgentUnavailable as error:
            yield Check(f"agent {name}", False, "not installed", str(error), needed=False)
    if well:
        yield from (dataclasses.replace(check, needed=False) for check in agent_checks(found, make_bubblewrap()))
    else:
        yield from (Check(name, True, f"{runtime.version}, not tried in a sandbox") for name, runtime in found)


def _plain(found: tuple[Check, ...]) -> list[dict[str, object]]:
    return [dataclasses.asdict(check) for check in found]


def _line(check: Check) -> str:
    remedy = f"\n     remedy: {check.remedy}" if check.remedy and not check.ok else ""
    return f"{_MARKS[check.ok, check.needed]} {check.name}: {check.detail}{remedy}"
