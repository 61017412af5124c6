"""Keys that stand where they would be committed, shown and sent along: refused, by what they are and where."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pytest_wfbench.files import UnsafeFile, read_untrusted
from pytest_wfbench.gateway.providers import KNOWN
from pytest_wfbench.matrix.problems import Problem, shown_path

LIMIT = 4 << 20
SHORTEST = 8
# The generic shape needs a digit: `sk-learn-compatible` is a word.
SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("an Anthropic key", re.compile(r"sk-ant-[A-Za-z0-9_-]{8,}")),
    ("an OpenRouter key", re.compile(r"sk-or-[A-Za-z0-9_-]{8,}")),
    ("an OpenAI key", re.compile(r"sk-proj-[A-Za-z0-9_-]{8,}")),
    ("a provider's key (sk-…)", re.compile(r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}")),
    ("a Google key", re.compile(r"AIza[A-Za-z0-9_-]{35}")),
    ("a provider's key", re.compile(r"(?<![A-Za-z0-9])(?:gsk_|xai-|pplx-)[A-Za-z0-9]{30,}")),
    ("a Hugging Face token", re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{20,}")),
)


def written_keys(files: Iterable[Path], environment: Mapping[str, str] = os.environ) -> Iterator[Problem]:
    """Yield a problem for each line of case and arms files that holds a provider's key; the key is not repeated."""
    own = tuple(_own(environment))
    for file in dict.fromkeys(files):
        for number, line in enumerate(_text(file).splitlines(), 1):
            if (name := _named(line, own)) is not None:
                remedy = "Take it out, have it revoked, and set it in the environment: no file is to hold one"
                yield Problem(shown_path(file), number, "", "", f"holds {name}", remedy)


def _own(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for known in KNOWN:
        value = environment.get(known.key_variable or "", "").strip()
        if known.key_variable and len(value) >= SHORTEST:
            yield f"the value of {known.key_variable}", value


def _named(line: str, own: Iterable[tuple[str, str]]) -> str | None:
    found = (name for name, value in own if value in line)
    return next(found, None) or next((name for name, shape in SHAPES if shape.search(line)), None)


def _text(file: Path) -> str:
    try:
        return read_untrusted(file.parent, file.name, LIMIT).decode(errors="replace")
    except (UnsafeFile, OSError):
        # Whoever reads it for its content has said so.
        return ""
