"""Foreign text in Markdown."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pytest_wfbench.report.escape import cell, one_line

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
NASTY = st.text(st.sampled_from("ab1 |\\`*_~<>&[]()!#@:/-+=$.\n\t\u202e\u200d\x1b\ud800é\"'{}"), max_size=40)


class Cells(HTMLParser):
    """Collects the text of table cells, and every tag that stands in one."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside = self.inside or tag == "td"
        self.cells += [""] if tag == "td" else []
        self.tags += [tag] if self.inside and tag != "td" else []

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "td"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells[-1] += data


def rendered(text: str) -> Cells:
    """The one table row that a text makes, as a browser would see it."""
    parser = Cells()
    parser.feed(MARKDOWN.render(f"| a | b |\n|---|---|\n| {text} | end |\n"))
    return parser


class TestProperties:
    @given(NASTY)
    @example("`a|b`")
    @example("\\|")
    @example("a\\")
    @example("<b>x</b><!-- y -->")
    @example("![x](http://y) [z]: w")
    @example("~~a~~ **b** __c__ a_b_c _d_")
    def test_shows_as_it_is(self, text: str) -> None:
        """Whatever the text, it fills one cell, renders to itself and makes no markup."""
        found = rendered(cell(text))
        assert found.tags == []
        assert [entry.replace("\u200b", "") for entry in found.cells] == [one_line(text, 160), "end"]

    @given(NASTY | st.text(max_size=300), st.integers(1, 50))
    def test_one_line(self, text: str, limit: int) -> None:
        """A line is never longer than asked for and holds no control, bidirectional or invisible character."""
        line = one_line(text, limit)
        assert len(line) <= limit
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)
        assert line == line.strip()

    @given(NASTY)
    def test_a_line_of_prose(self, text: str) -> None:
        """At the start of a list entry it opens no heading, list, quote or rule."""
        html = MARKDOWN.render(f"- {cell(text)}\n")
        assert not re.search(r"<(h[1-6]|ol|blockquote|hr|pre|table|ul>.*<ul)\b", html)


class TestMentions:
    @pytest.mark.parametrize(
        "text", ["@octocat did", "see #123", "o/r#5", "GH-12", "https://github.com/o/r/issues/1", "www.x.org"]
    )
    def test_broken(self, text: str) -> None:
        """Names, references and links are shown and notify or link nothing."""
        escaped = cell(text)
        assert "&#8203;" in escaped
        assert not re.search(r"@[A-Za-z0-9]|#[0-9]|GH-[0-9]|://|www\.", escaped.replace("&#8203;", "\u200b"))

    def test_cut_first(self) -> None:
        """The text is cut before it is escaped, so that no escape is halved."""
        assert cell("|" * 200, 10) == "\\|" * 9 + "…"
