"""Links to the traces of cells, by the template that the sweep was given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from pytest_wfbench.digests import trace_id
from pytest_wfbench.evidence.manifest import Sweep
from pytest_wfbench.report.comment_rows import Line
from pytest_wfbench.report.escape import cell
from pytest_wfbench.report.words import plural

SAFE_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,300}\Z")
MOST = 50


def trace_links(sweep: Sweep, lines: Sequence[Line]) -> tuple[str, ...]:
    """Return a block of links that is folded, in the order of the rows; nothing where no template is set."""
    template = sweep.options.trace_url
    links = list(_links(template, sweep.sweep_id, lines)) if template else []
    if not links:
        return ()
    more = [f"- and {plural(len(links) - MOST, 'more trace')}"] if len(links) > MOST else []
    return (
        "",
        f"<details><summary>{plural(len(links), 'trace')}</summary>",
        "",
        *links[:MOST],
        *more,
        "",
        "</details>",
    )


def _links(template: str, sweep_id: str, lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        for run, cell_id in line.runs:
            url = trace_url(template, sweep_id, cell_id)
            if SAFE_URL.match(url):
                yield f"- [{cell(line.name, 100)} · run {run}]({url})"


def trace_url(template: str, sweep_id: str, cell_id: str) -> str:
    """Return the address of a cell's trace: ``{trace_id}``, ``{sweep_id}`` and ``{cell_id}`` stand for its own."""
    values = {"{trace_id}": trace_id(sweep_id, cell_id), "{sweep_id}": sweep_id, "{cell_id}": cell_id}
    for name, value in values.items():
        template = template.replace(name, quote(value, safe=""))
    return template
