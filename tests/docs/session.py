"""Documentation's shell blocks, run as a reader would: one directory, one block after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .markdown import Block

TIMEOUT = 300
LEFT_OUT = re.compile(
    r"(WFBENCH|PYTEST|CI$|GITHUB|GITLAB|ANTHROPIC|OPENAI|OPENROUTER|LITELLM_PROXY|OLLAMA"
    r"|COLUMNS|NO_COLOR|FORCE_COLOR|PY_COLORS)"
)

# What differs from run to run, and what stands in its place.
VOLATILE = (
    (re.compile(r"[^\s(]*/wfbench-\d{8}T\d{6}Z-[0-9a-f]{6}"), "DIRECTORY"),
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}"), "SWEEP"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"order=\d+"), "order=N"),
    (re.compile(r"\d+ h \d\d min|\d+ min \d\d s|\d+\.\d+ ?s\b( \(\d:\d\d:\d\d\))?"), "DURATION"),
    (re.compile(r" · [0-9a-f]{7,40}$|(?<= at )[0-9a-f]{7,40}\b", re.M), ""),
    (re.compile(r"[─━=-]{3,}"), "---"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" +$", re.M), ""),
)
SAVINGS_CELLS, SAVINGS_WALL = 12, 8


def settled(text: str) -> list[str]:
    """Return the lines of an output that are not blank; what differs from run to run, and white space, made equal."""
    for pattern, instead in VOLATILE:
        text = pattern.sub(instead, text)
    return [line for line in map(_without_wall, text.splitlines()) if line.strip()]


def _without_wall(line: str) -> str:
    """In the table of savings, seconds show as a percentage."""
    cells = line.split("|")
    if len(cells) == SAVINGS_CELLS and " vs " in cells[3]:
        cells[SAVINGS_WALL] = " PERCENT "
    return "|".join(cells)


@dataclass(frozen=True)
class Ran:
    """One command: what it printed, both streams in one, and how it ended."""

    command: str
    output: str
    status: int


@dataclass
class Shell:
    """A reader's shell in one directory."""

    directory: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, command: str) -> Ran:
        """Run one command line or script."""
        kept = {name: value for name, value in os.environ.items() if not LEFT_OUT.match(name)}
        path = f"{Path(sys.executable).parent}:{kept['PATH']}"
        env = {**kept, "PATH": path, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **self.env}
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
        return Ran(command, done.stdout, done.returncode)

    def play(self, blocks: Iterable[Block]) -> Iterator[tuple[Ran, str]]:
        """Run the blocks' commands; yield what each printed beside what the page shows."""
        for block in blocks:
            if block.kind == "sh":
                yield self.run(f"set -e\n{block.text}"), ""
            for command, shown in _commands(block.text) if block.kind == "console" else ():
                yield self.run(command), shown


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown
