"""What the options say of money and of how much goes at once, and what of it cannot be kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_wfbench.agents.registry import get_agent
from pytest_wfbench.files import user_path
from pytest_wfbench.gateway.api import Terms
from pytest_wfbench.gateway.cassette import CassetteError, CassetteSet
from pytest_wfbench.matrix.cells import Cell
from pytest_wfbench.matrix.problems import Problem
from pytest_wfbench.options import Options
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


def unpriced(terms: Terms, cells: Iterable[Cell], scripts: Mapping[str, CassetteSet]) -> Iterator[Problem]:
    """Yield a problem for each model that a budget is to hold for, and that has no price to hold it by."""
    if not terms.has_budget:
        return
    try:
        prices = PriceTable.load(terms.prices)
    except BadPrices:
        return  # Named tables are looked at elsewhere; without the bundled one there is no gateway either.
    told: dict[tuple[str, Answering], None] = {}
    for cell in cells:
        if get_agent(cell.subject.agent).uses_model:
            told.update({(str(cell.subject), who): None for who in _answering(cell, scripts)})
    for subject, who in told:
        if not is_priced(prices, who):
            message = f"no budget can be kept: {who.provider}/{who.model} has no price in {prices.name}'s table"
            yield Problem(subject, 0, "", "", message, f"Name a table that has it in {PRICES}, or leave the budget out")


def _answering(cell: Cell, scripts: Mapping[str, CassetteSet]) -> Iterator[Answering]:
    """Yield who answers a cell: the subject's model, or those that its scripts play."""
    played = scripts.get(cell.subject.model)
    if played is None and cell.subject.cassette is None:
        provider, _, name = cell.subject.model.partition("/")
        yield Answering(provider, name)
    for session in cell.arm.sessions if played else ():
        with suppress(CassetteError):  # Said elsewhere.
            script = played.find(labels_of(cell, session.name)) if played else None
            if script:
                yield Answering(script.cassette.provider, script.cassette.model)
