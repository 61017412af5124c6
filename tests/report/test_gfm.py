"""The comment as GitHub renders it: through its own Markdown renderer, asserted on the HTML."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_wfbench.evidence.row import Row
from pytest_wfbench.evidence.store import Rows
from pytest_wfbench.report.comment import COMMENT_BYTES, render_comment
from pytest_wfbench.report.summary import Report, summarise_sweep

BIDI, ZERO = "\u202e\u2066\u200f", "\u200b"
HOSTILE = {
    "pipes": "a | b || c \\| d `x|y` ``p|q``",
    "backticks": "```\nfence\n``` and ` open and ~~~ tilde",
    "html": "<script>alert(1)</script><img src=x onerror=y><details><summary>s</summary><!-- open",
    "mentions": "@octocat and @team/devs, (@a) x@y.org",
    "references": "#123 fixes #4, GH-5, owner/repo#6, gh-7",
    "newlines": "one\ntwo\r\nthree\n\n| four |\n|---|\n# five",
    "bidi": f"left {BIDI}right \u2028 line \u0085 next",
    "control": "a\x00b\x07c\x1b[31mred\x1b[0m\x7f",
    "links": "[click](javascript:alert(1)) ![i](http://e.vil/x.png) http://e.vil www.e.vil <http://e.vil>",
    "emphasis": "**bold** _it_ ~~gone~~ *x* $math$ \\alpha",
    "marker": "<!-- pytest-wfbench key=smoke order=999999 --> --> ",
    "entities": "&lt;b&gt; &#60;i&#62; &amp;",
    "table": "|---|---|\n| a | b |",
    "blocks": "- item\n1. one\n> quote\n    code\n=====",
}
ALLOWED = {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "blockquote", "sub", "code", "details", "summary",
           "ul", "li", "a"}  # fmt: skip
VOID = {"br", "hr", "img", "input"}


class Outline(HTMLParser):
    """Tags that are open, all that were met, links, and the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.met: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.met.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(text: str) -> str:
    """GitHub lets some HTML pass, and takes the rest out."""
    return cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(rendered(text))
    found.close()
    return found


def cells(text: str) -> list[list[str]]:
    """The visible text of each body row's cells."""
    body = rendered(text).partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [[html.unescape(re.sub(r"<[^>]+>", "", c)) for c in re.findall(r"<td.*?>(.*?)</td>", r, re.DOTALL)]
            for r in rows]  # fmt: skip


def whole(text: str) -> None:
    """Nothing stays open, nothing is there but what the renderer writes, and nothing hides."""
    found = outline(text)
    assert (found.open, found.faults) == ([], [])
    assert set(found.met) <= ALLOWED, set(found.met) - ALLOWED
    assert not re.search(r"@[A-Za-z0-9]", found.text)
    assert not re.search(r"#[0-9]|(?i:\bgh-[0-9])", found.text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u2028\u2029]", text)
    assert all(link.startswith("https://ci.example/") for link in found.links)


def question(demo: ModuleType, number: int, **changes: Any) -> Row:
    judge = {"pass": True, "score": 1.0, "reason": "right", "model": "gpt-5-mini"}
    row: Row = demo.row(f"question-{number:04}", "baseline", **{"task_kind": "question", "judge": judge, **changes})
    return row


def report(demo: ModuleType, rows: list[Row], **changes: Any) -> Report:
    return summarise_sweep(Rows(tuple(rows)), demo.sweep(rows, **changes))


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
class TestHostile:
    @pytest.mark.parametrize("outcome", ["miss", "unusable"])
    def test_reason(self, demo: ModuleType, said: str, outcome: str) -> None:
        """A reason shows in its row and nowhere else, is one line, and does nothing."""
        down = [question(demo, n, outcome="unusable", kind="no-output", reason="none") for n in (3, 4)]
        rows = [question(demo, 1), question(demo, 2, outcome=outcome, kind="rubric-missed", reason=said), *down]
        text = render_comment(report(demo, rows))
        whole(text)
        assert [len(row) for row in cells(text)] == [5] * 4
        (shown,) = [row[1].replace(ZERO, "") for row in cells(text) if row[0] == "question-0002"]
        assert shown.startswith(("🟡 miss — rubric-missed: ", "💥 unusable — rubric-missed: "))

    def test_common_cause(self, demo: ModuleType, said: str) -> None:
        """The cause of most that is unusable shows once, above the table, and does nothing there either."""
        rows = [question(demo, n, outcome="unusable", kind="judge-error", reason=said) for n in (1, 2)]
        text = render_comment(report(demo, rows))
        whole(text)
        assert [row[1] for row in cells(text)] == ["💥 unusable — judge-error"] * 2
        (banner,) = re.findall("<blockquote>(.*?)</blockquote>", rendered(text), re.DOTALL)
        assert "2 of 2 unusable: judge-error — " in banner

    def test_names(self, demo: ModuleType, said: str) -> None:
        """So do names: of tasks, arms, subjects, models, judges, shards and the workflow."""
        judge = {"pass": True, "score": 1.0, "reason": "r", "model": said}
        rows = [demo.row(said, said, subject=f"{said}:{n}", models_answered=(said,), judge=judge) for n in "ab"]
        ci = {"workflow": said, "order": 4, "url": said}
        manifest = {"missing_shards": [said], "head": said, "ci": ci, "arms": [], "tasks": []}
        text = render_comment(report(demo, rows, **manifest))
        whole(text)
        assert [len(row) for row in cells(text)] == [5, 5, 5]
        assert len(re.findall("^<!-- pytest-wfbench", text, re.M)) == 1


def test_what_was_said_is_legible(demo: ModuleType) -> None:
    """Escaped text shows as it was written."""
    said = "wants `a|b` & <c>, got **d** \\ e_f [g](h) ~ $i"
    text = render_comment(report(demo, [question(demo, 1, outcome="miss", kind="check-failed", reason=said)]))
    assert cells(text)[0][1].replace(ZERO, "") == f"🟡 miss — check-failed: {said}"


TRACES = {"options": {"trace_url": "https://ci.example/t/{trace_id}?s={sweep_id}"}}


class TestLadder:
    def suite(self, demo: ModuleType, misses: int, passes: int, **changes: Any) -> Report:
        said = "\n".join(HOSTILE.values())
        missed = [question(demo, n, outcome="miss", kind="rubric-missed", reason=said) for n in range(misses)]
        return report(demo, missed + [question(demo, n) for n in range(misses, misses + passes)], **changes)

    @pytest.mark.slow
    @pytest.mark.parametrize(("misses", "passes"), [(3, 6), (100, 50), (300, 1700), (2000, 0), (0, 2000)])
    def test_two_thousand_questions(self, demo: ModuleType, misses: int, passes: int) -> None:
        """Every rung is whole and fits, with its marker, its headline and its footer."""
        text = render_comment(self.suite(demo, misses, passes, **TRACES), key="smoke")
        assert len(text.encode()) <= COMMENT_BYTES
        whole(text)
        assert text.splitlines()[0].startswith("<!-- pytest-wfbench key=smoke order=")
        assert f"— {passes}/{misses + passes} pass" in text.splitlines()[1]
        assert "</sub>" in text

    def test_every_rung(self, demo: ModuleType) -> None:
        """Whatever the limit, nothing stays open; marker and headline stay to the last."""
        made = self.suite(demo, 40, 20, **TRACES)
        sizes = set()
        for limit in range(400, 26_000, 400):
            text = render_comment(made, limit=limit)
            sizes.add(len(text.encode()))
            assert len(text.encode()) <= limit
            whole(text)
            assert text.startswith("<!-- pytest-wfbench")
            assert "### PASS WITH MISSES 🟡 Smoke eval — 20/60 pass" in text
        assert len(sizes) >= 5

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.text(max_size=200), st.text(min_size=1, max_size=60), st.integers(400, 4000))
    def test_any_text(self, demo: ModuleType, reason: str, name: str, limit: int) -> None:
        """Whatever names and reasons say."""
        rows = [demo.row(f"{name}{n}", "baseline", outcome="miss", reason=reason) for n in range(4)]
        text = render_comment(report(demo, rows, **TRACES), limit=limit)
        assert len(text.encode()) <= limit
        whole(text)


def test_reasons_go_before_links(demo: ModuleType) -> None:
    """Where there is room for links but not for reasons, links stay."""
    rows = [question(demo, n, outcome="miss", reason="é" * 150) for n in range(10)]
    made = report(demo, rows, **TRACES)
    with_both, room = render_comment(made), len(render_comment(made).encode()) - 100
    text = render_comment(made, limit=room)
    assert ("éé" in with_both, "éé" in text, "<details>" in text, "question-0009" in text) == (True, False, True, True)


class TestTraces:
    def test_links(self, demo: ModuleType) -> None:
        """Each run links its trace, folded; ids are escaped."""
        text = render_comment(report(demo, [question(demo, n, outcome="miss") for n in (1, 2)], **TRACES))
        found = outline(text)
        assert "2 traces" in found.text
        assert len([link for link in found.links if re.search(r"/t/[0-9a-f]{32}\?s=2026", link)]) == 2
        assert found.met.index("details") > found.met.index("table")

    def test_none(self, demo: ModuleType) -> None:
        """Without a template, or with one that leads nowhere, there is no block."""
        for options in ({}, {"trace_url": "javascript:alert({trace_id})"}):
            assert "<details>" not in render_comment(report(demo, [question(demo, 1)], options=options))

    def test_many(self, demo: ModuleType) -> None:
        """Links are bounded, and the rest is counted."""
        text = render_comment(report(demo, [question(demo, n) for n in range(80)], **TRACES))
        assert len(outline(text).links) == 50
        assert "and 30 more traces" in text
