"""Foreign text in GitHub-flavoured Markdown: it shows as it is, in one line, and does nothing."""

from __future__ import annotations

import re
import unicodedata

ELLIPSIS = "…"
# A zero-width space as an entity ends a mention or reference without being seen.
BREAK = "&#8203;"

# An underscore that a word goes on after closes no emphasis, and names read better without a backslash.
MARKUP = re.compile(r"[\\`*\[\]<>&|~$]|_(?![A-Za-z0-9])")
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
AUTOLINK = re.compile(r"@(?=[A-Za-z0-9_-])|#(?=[0-9])|(?i:\bgh-)(?=[0-9])|:(?=//)|(?i:\bwww)(?=\.)")
BLOCK = re.compile(r"^(?=(?:[-+=#]+|[0-9]{1,9}[.)])(?:\s|$))")
SPACES = re.compile(r"\s+")
# What a CI runner takes for an order: anywhere in a log, or where a line begins that is ours to break.
ORDERS = re.compile(
    r"(?i):(?=:(?:add-|debug|echo|end|error|group|notice|remove-|save-|set-|stop-|warning))|#(?=#(?:vso|teamcity)?\[)"
)


def one_line(text: str, limit: int) -> str:
    """Return the text as one printable line of at most ``limit`` characters.

    Control, bidirectional and other invisible characters are gone; white space is one blank; what a CI runner would
    obey (``::set-output``, ``##[group]``) is parted by one.
    """
    visible = "".join(_visible(character) for character in text)
    line = ORDERS.sub(r"\g<0> ", SPACES.sub(" ", visible)).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + ELLIPSIS


def cell(text: str, limit: int = 160) -> str:
    """Return foreign text for a table cell or a line of prose: cut first, then escaped."""
    line = MARKUP.sub(_escaped, one_line(text, limit))
    unlinked = AUTOLINK.sub(lambda match: match.group(0) + BREAK, line)
    return BLOCK.sub(BREAK, unlinked)


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category[0] == "C" else character


def _escaped(match: re.Match[str]) -> str:
    return ENTITIES.get(match.group(0), "\\" + match.group(0))
