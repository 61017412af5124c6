"""``wfbench power``: how often the gate is fooled by chance, and what it would see, by simulation from the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from pytest_wfbench.cli._exit import NOTHING, CliError, usage_errors
from pytest_wfbench.cli._results import directory_argument, json_option, show
from pytest_wfbench.evidence.store import EvidenceError, read_rows, read_sweep
from pytest_wfbench.promotion.power import SIMS, Power, PowerReport, Rate, power_of
from pytest_wfbench.report.escape import one_line

MOST = 100_000


@click.command("power")
@directory_argument
@click.option("--sims", type=click.IntRange(1, MOST), default=SIMS, show_default=True, help="Simulated sweeps each.")
@json_option
def command(directory: Path, sims: int, as_json: bool) -> None:
    """Simulate sweeps from the runs of each incumbent, and print how often its candidate would be promoted.

    At effect 0 the candidate is the incumbent, and every promotion is false; else its metric is that much smaller, or
    its weighted F1 that much higher. The same rows give the same numbers. Nothing is written.

    \b
    Example:
        wfbench power results/latest
        wfbench power results/latest --sims 5000 --json | jq '.powers[].false_promotion'
    """
    with usage_errors(EvidenceError):
        rows, sweep = read_rows(directory), read_sweep(directory)
    found = power_of(rows, sweep, sims)
    if not found.powers:
        told = "no run of an implementation or review task is graded, so there is nothing to simulate from"
        raise CliError(f"{directory}: {told}", NOTHING)
    show(found.model_dump_json(indent=1) + "\n" if as_json else "\n".join(_told(found)) + "\n")


def _told(found: PowerReport) -> Iterator[str]:
    for power in found.powers:
        yield from _power(power)
    yield from found.missing
    yield f"{found.sims} simulated sweeps each, seed {found.seed}; intervals are Wilson's."


def _power(power: Power) -> Iterator[str]:
    where = one_line(f"{power.arm} ({power.subject})", 200)
    yield f"{power.policy} policy, {power.metric}, from {power.runs} runs of {where} on {power.tasks} tasks"
    if not power.ruled:
        yield "  The gate cannot rule on such runs: it promotes nothing."
    yield f"  identical candidate      promoted in {_rate(power.false_promotion)}"
    for rate in power.curve:
        yield f"  {_effect(power, rate):<24} promoted in {_rate(rate)}"


def _effect(power: Power, rate: Rate) -> str:
    if power.unit == "weighted_f1":
        return f"weighted F1 +{rate.effect:g}"
    return f"{power.metric} −{rate.effect:g} %"


def _rate(rate: Rate) -> str:
    low, high = 100 * rate.interval.low, 100 * rate.interval.high
    return f"{100 * rate.rate:.1f} % ({low:.1f} … {high:.1f} %)"
