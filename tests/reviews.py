"""A review task on the small suite, and reviews to be written by scripts."""

from __future__ import annotations

import json
from typing import Any

CASES = """\
kind: review
tasks:
  - id: finish
    repo: tiny
    prompt: Review the change.
    patch: change.patch
    labels: labels.json
    timeout: {session: 5s}
    limits: {disk: 8MiB, inodes: 100}
"""
ARMS = """\
arms:
  look:
    default: true
    kinds: [review]
    sessions: [{name: review, prompt: "Write to {output}. {task}"}]
"""
PATCH = """\
--- a/app.py
+++ b/app.py
@@ -1,3 +1,3 @@
 line 1
-line 2
+line two
 line 3
"""
LABELS = json.dumps(
    {
        "schema_version": 1,
        "findings": [
            {"id": "hidden-label-one", "severity": "high", "path": "app.py", "line_start": 2, "line_end": 2}
            | {"category": "correctness"},
            {"id": "hidden-label-two", "severity": "low", "path": "app.py", "line_start": 9, "line_end": 10}
            | {"category": "style"},
        ],
    }
)


def finding(id_: str, severity: str, line: int, **other: Any) -> dict[str, Any]:
    """One finding in app.py."""
    prose = {"scenario": "It is called.", "evidence": "Seen.", "recommendation": "Mend it."}
    place = {"path": "app.py", "line": line, "end_line": line, "category": "correctness"}
    return {"id": id_, "severity": severity, **place, **prose, "blocking": severity in ("critical", "high"), **other}


def review(verdict: str, *findings: dict[str, Any]) -> str:
    """A whole review as JSON."""
    return json.dumps({"schema_version": 1, "verdict": verdict, "findings": list(findings)})


def writing(text: str) -> str:
    """Lines of a script that write a review where it belongs."""
    return f"cat > \"$WFBENCH_REVIEW_OUTPUT/review-output.json\" <<'REVIEW'\n{text}\nREVIEW\n"
