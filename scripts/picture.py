"""A comment as a forge shows it, by Chromium: python scripts/picture.py results/latest/comment.md picture.png."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

WIDTH, HEIGHT = 980, 650
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
STYLE = """
body { margin: 16px; font: 14px/1.5 -apple-system, "Liberation Sans", "Noto Color Emoji", sans-serif; color: #1f2328 }
header { border: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; background: #f6f8fa; padding: 8px 16px; color: #59636e }
header b { color: #1f2328 }
main { border: 1px solid #d1d9e0; border-top: 0; border-radius: 0 0 6px 6px; padding: 4px 16px 12px }
h3 { font-size: 17.5px; margin: 12px 0 }
table { border-collapse: collapse; margin: 12px 0 }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
tr:nth-child(2n) { background: #f6f8fa }
code { background: #eff1f3; border-radius: 6px; padding: 2px 5px; font: 12px "Liberation Mono", monospace }
blockquote { border-left: 4px solid #d1d9e0; margin: 0; padding: 0 14px; color: #59636e }
sub { font-size: 12px; color: #59636e; vertical-align: baseline }
"""


def page(comment: str) -> str:
    """Return the HTML of a page that shows nothing but the comment."""
    body = cmarkgfm.github_flavored_markdown_to_html(comment, options=Options.CMARK_OPT_UNSAFE)
    body = re.sub(r'align="(\w+)"', r'style="text-align: \1"', body)
    head = "<header><b>github-actions</b> commented</header>"
    return f'<!DOCTYPE html><meta charset="utf-8"><style>{STYLE}</style>{head}<main>{body}</main>'


def main(comment: str, picture: str) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as place:
        html = Path(place) / "comment.html"
        html.write_text(page(Path(comment).read_text()))
        size = f"--window-size={WIDTH},{HEIGHT}"
        where = (f"--user-data-dir={place}/profile", size, f"--screenshot={Path(picture).absolute()}", html.as_uri())
        subprocess.run(["chromium", *FLAGS, *where], check=True, timeout=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
