"""What a page of documentation holds: fenced blocks with their marks, tables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[a-z ]+): (?P<name>[^>]+?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
IMAGE = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block: the mark before it (``run``, ``demo``, ``not run`` or none) and what the mark names."""

    page: Path
    mark: str
    name: str
    kind: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for match in FENCE.finditer(page.read_text()):
        yield Block(page, match["mark"] or "", match["name"] or "", match["kind"], match["text"])


def marked(page: Path, mark: str, name: str) -> list[Block]:
    """Return the blocks of a page with one mark and name, in their order."""
    return [block for block in blocks(page) if (block.mark, block.name) == (mark, name)]


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head."""
    below = re.split(rf"^#+ {re.escape(heading)}$", page.read_text(), flags=re.M)[1]
    lines = below[below.index("\n|") :].strip().split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines[2:]]


def first_column(page: Path, heading: str) -> list[str]:
    """Return the first cells of that table, without their back-quotes."""
    return [row[0].strip("`") for row in table(page, heading)]


def links(page: Path) -> list[str]:
    """Return the targets of a page's links, code aside."""
    return LINK.findall(CODE.sub("", page.read_text()))


def images(page: Path) -> list[str]:
    """Return what a page shows as pictures, each with words for those who do not see it."""
    return IMAGE.findall(CODE.sub("", page.read_text()))
