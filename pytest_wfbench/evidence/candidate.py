"""The candidate's files as a sweep ran with them: kept byte for byte beside its rows, for whoever applies them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_wfbench.files import write_atomic

CANDIDATE = "candidate"


def write_candidate(results: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``candidate/<skill>/…`` below a new results directory; nothing is redacted, for its digest is bound."""
    for name, data in files:
        path = results / CANDIDATE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)
