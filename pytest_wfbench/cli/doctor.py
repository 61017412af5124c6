"""``wfbench doctor``: what this machine can do."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from pytest_wfbench.agents.base import AgentUnavailable
from pytest_wfbench.agents.registry import get_agent, known_agents
from pytest_wfbench.cli._exit import FAILED, end
from pytest_wfbench.cli._results import json_option
from pytest_wfbench.sandbox.identity import cache_directory, choose_identity
from pytest_wfbench.sandbox.preflight import Check, checks

NEEDED = "git"
FREE_BYTES = 1 << 30


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Try everything that a cell needs of this machine, and say what to do where it fails.

    Exit status: 0 when cells can run here, 1 when not. Agents that are not installed are no failure.

    \b
    Example:
        wfbench doctor
        wfbench doctor --json
    """
    machine = (_git(), _cache(), *checks())
    agents = tuple(_agents())
    well = all(check.ok for check in machine)
    if as_json:
        shown = {"ok": well, "machine": _plain(machine), "agents": _plain(agents)}
        click.echo(json.dumps(shown, indent=1))
    else:
        for check in (*machine, *agents):
            click.echo(_line(check))
        click.echo("cells can run here" if well else "cells cannot run here")
    end(0 if well else FAILED)


def _git() -> Check:
    path = shutil.which(NEEDED)
    return Check(
        "git", path is not None, path or "not found", None if path else "install git (on Debian: apt install git)"
    )


def _cache() -> Check:
    try:
        path = cache_directory(choose_identity())
        free = shutil.disk_usage(path).free
    except OSError as error:
        return Check("cache", False, str(error), "name a writable directory in WFBENCH_CACHE_DIR")
    remedy = None if free > FREE_BYTES else "free some space, or name another directory in WFBENCH_CACHE_DIR"
    return Check("cache", remedy is None, f"{path}, {free / (1 << 30):.0f} GiB free", remedy)


def _agents() -> Iterator[Check]:
    """Yield what is known of each agent that can be looked for without a script's path."""
    for name in known_agents():
        if not get_agent(name).uses_model:
            continue
        try:
            yield Check(f"agent {name}", True, get_agent(name).find("replay/demo", Path.cwd()).version)
        except AgentUnavailable as error:
            yield Check(f"agent {name}", False, "not installed", str(error))


def _plain(found: tuple[Check, ...]) -> list[dict[str, object]]:
    return [dataclasses.asdict(check) for check in found]


def _line(check: Check) -> str:
    mark = "ok  " if check.ok else "FAIL" if not check.name.startswith("agent") else "none"
    remedy = f"\n     remedy: {check.remedy}" if check.remedy and not check.ok else ""
    return f"{mark} {check.name}: {check.detail}{remedy}"
