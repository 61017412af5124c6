"""Writes what documentation repeats of the code: options, the tree of modules, and what attacks are tried.

Run it as ``python tests/docs/generate.py``; the tests beside it say when that is needed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_wfbench.options import SPECS, OptionSpec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.docs.tried import tried_rows  # noqa: E402

DOCS = ROOT / "docs"
PACKAGE = ROOT / "pytest_wfbench"
COLUMN = 24


def shown_default(spec: OptionSpec) -> str:
    """Return an option's default as the table shows it."""
    if spec.kind == "flag":
        return "off"
    if spec.default in (None, ()):
        return "none"
    return f"`{spec.default:g}`" if spec.kind == "fraction" else f"`{spec.default}`"


def option_rows() -> Iterator[str]:
    """Yield the rows of the table of options."""
    for spec in SPECS:
        value = spec.metavar or ("\\|".join(spec.choices) if spec.choices else "")
        choices = f"; one of {', '.join(spec.choices)}" if spec.choices and spec.metavar else ""
        yield f"| `{f'{spec.flag} {value}'.strip()}` | {shown_default(spec)} | {spec.help}{choices} |"


def _about(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.partition("\n")[0].partition(". ")[0].replace("``", "").rstrip(".")


def tree(directory: Path = PACKAGE, depth: int = 1) -> Iterator[str]:
    """Yield a line for each module below a directory: its name, and the first sentence of its docstring."""
    for path in sorted(directory.glob("*.py")):
        if path.name != "__init__.py":
            yield f"{'  ' * depth + path.name:<{COLUMN}} {_about(path)}"
    for inner in sorted(path for path in directory.iterdir() if (path / "__init__.py").exists()):
        yield f"{'  ' * depth + inner.name + '/':<{COLUMN}} {_about(inner / '__init__.py')}"
        yield from tree(inner, depth + 1)


def between(text: str, name: str, lines: Iterator[str]) -> str:
    """Return the text with the lines between its two marks of that name."""
    mark = re.compile(rf"(<!-- begin {name} -->\n)(.*?)(<!-- end {name} -->)", re.DOTALL)
    body = "\n".join(lines) + "\n"
    return mark.sub(lambda match: match[1] + body + match[3], text)


def options_page() -> str:
    """Return docs/options.md as it should be."""
    rows = iter(["| option | default | meaning |", "|---|---|---|", *option_rows()])
    return between((DOCS / "options.md").read_text(), "options", rows)


def architecture_page() -> str:
    """Return docs/architecture.md as it should be."""
    lines = iter(["```", "pytest_wfbench/", *tree(), "```"])
    return between((DOCS / "architecture.md").read_text(), "tree", lines)


def security_page() -> str:
    """Return docs/security.md as it should be."""
    rows = iter(["| tried | hostile scripts | tests | where |", "|---|---|---|---|", *tried_rows(), ""])
    return between((DOCS / "security.md").read_text(), "tried", rows)


PAGES = {"options.md": options_page, "architecture.md": architecture_page, "security.md": security_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        if (text := page()) != (DOCS / name).read_text():
            (DOCS / name).write_text(text)
