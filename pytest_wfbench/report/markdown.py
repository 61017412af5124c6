"""report.md, from the one summary and a template."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pytest_wfbench.report.chance import chance_notes, chance_rows, chance_sentence
from pytest_wfbench.report.escape import cell
from pytest_wfbench.report.prose import sentences
from pytest_wfbench.report.summary import Report
from pytest_wfbench.report.words import UNKNOWN, count, dollars, seconds, signed
from pytest_wfbench.statistics.aggregate import Number, Summary
from pytest_wfbench.statistics.reviews import Scores, over_repeats
from pytest_wfbench.statistics.uncertain import Bounds

TEMPLATES = Path(__file__).with_name("templates")


def render_markdown(report: Report) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "cell": cell, "count": count, "dollars": dollars, "seconds": seconds, "signed": signed, "score": _score,
        "flag": _flag, "share": _share, "shares": _shares, "chance_sentence": chance_sentence,
        "chance_rows": chance_rows, "chance_notes": chance_notes,
    }  # fmt: skip
    template = environment.get_template("report.md.j2")
    return template.render(report=report, sentences=sentences(report), reviews=_reviews(report), repeats=report.repeats)


def _reviews(report: Report) -> list[tuple[Summary, Scores]]:
    return [(summary, over_repeats(summary.graded)) for summary in report.summaries if summary.kind == "review"]


def _score(value: Number | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _shares(found: Bounds | None) -> str:
    return UNKNOWN if found is None else f"{100 * found.low:.1f} … {100 * found.high:.1f} %"


def _flag(value: bool | None) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"
