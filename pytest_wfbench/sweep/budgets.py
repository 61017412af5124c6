"""What the options say of money and of how much goes at once, and what of it cannot be kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.files import user_path
from pytest_wfbench.gateway.api import Labels, Terms
from pytest_wfbench.gateway.cassette import CassetteError, CassetteSet
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.matrix.subject import REPLAY
from pytest_wfbench.options import Options
from pytest_wfbench.sweep.judge import judge_labels
from pytest_wfbench.sweep.scripts import labels_of
from pytest_wfbench.usage.charge import Answering, is_priced
from pytest_wfbench.usage.prices import BadPrices, PriceTable

PRICES = "--wfbench-prices"


def terms_of(options: Options, directory: Path) -> Terms:
    """Return the gateway's terms; a path typed as an option is relative to ``directory``."""
    return Terms(
        max_cost=options.max_cost,
        cell_max_cost=options.cell_max_cost,
        prices=user_path(options.prices, directory) if options.prices else None,
        max_parallel=options.max_parallel_requests,
    )


def unpriced(
    terms: Terms, cells: Iterable[Cell], scripts: Mapping[str, CassetteSet], judge: str | None = None
) -> Iterator[Problem]:
    """Yield a problem for each model that a budget is to hold for, the ``judge`` too, and that has no price."""
    if not terms.has_budget:
        return
    try:
        prices = PriceTable.load(terms.prices)
    except BadPrices:
        return  # Named tables are looked at elsewhere; without the bundled one there is no gateway either.
    told: dict[tuple[str, Answering], None] = {}
    for cell in cells:
        if get_agent(cell.subject.agent).uses_model:
            sessions = [session.name for session in cell.arm.sessions]
            found = _answering(cell.subject.model, [labels_of(cell, name) for name in sessions], scripts)
            told.update({(str(cell.subject), who): None for who in found})
        if judge and cell.task.rubric is not None and terms.max_cost is not None:
            told.update({(judge, who): None for who in _answering(judge, [judge_labels(cell)], scripts)})
    for subject, who in told:
        if not is_priced(prices, who):
            message = f"no budget can be kept: {who.provider}/{who.model} has no price in {prices.name}'s table"
            yield Problem(subject, 0, "", "", message, f"Name a table that has it in {PRICES}, or leave the budget out")


def _answering(model: str, sessions: Iterable[Labels], scripts: Mapping[str, CassetteSet]) -> Iterator[Answering]:
    """Yield who answers some sessions: the model that is asked for, or those that its scripts play."""
    played = scripts.get(model)
    if played is None:
        provider, _, name = model.partition("/")
        if f"{provider}/" != REPLAY:  # What is wrong with cassettes that are not there is said elsewhere.
            yield Answering(provider, name)
        return
    for labels in sessions:
        with suppress(CassetteError):  # Likewise.
            cassette = played.find(labels).cassette
            yield Answering(cassette.provider, cassette.model)
            yield from (Answering(cassette.provider, turn.model) for turn in cassette.turns if turn.model)
