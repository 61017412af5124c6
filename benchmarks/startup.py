"""What somebody pays who has the plugin installed and no case file: ``--collect-only`` of an empty test file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, median_ms, seconds_of

ROUNDS = 21


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "test_nothing.py").touch()
        without, with_plugin = [], []
        for _ in range(ROUNDS):
            without.append(seconds_of(lambda: _collect(directory, "-p", "no:wfbench")))
            with_plugin.append(seconds_of(lambda: _collect(directory)))
    yield Figure("start-up without the plugin, median", median_ms(without), "ms")
    yield Figure("start-up with the plugin, median", median_ms(with_plugin), "ms")
    pairs = [with_ - without_ for with_, without_ in zip(with_plugin, without, strict=True)]
    yield Figure("cost of the installed plugin, median of pairs", median_ms(pairs), "ms", bound=15)


def _collect(directory: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=False)
