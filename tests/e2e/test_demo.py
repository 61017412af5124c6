"""`make demo`, as its user sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.gateway.api import Labels
from pytest_wfbench.gateway.cassette import load_cassettes
from tests.e2e.conftest import ROOT, Ended, started, sweep
from tests.suite import living, processes_of, runs, until

pytestmark = pytest.mark.slow

FIELDS = ("ordinary_input", "cache_read_input", "cache_write_input", "output")


def demo_commands() -> list[list[str]]:
    """The arguments that `make demo` gives to pytest: for the workflows, for the reviews, and for a poor candidate."""
    shown = subprocess.run(
        ["make", "--no-print-directory", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [line.split()[1:] for line in shown.stdout.splitlines() if "/pytest " in line]


@pytest.fixture(scope="module")
def demo(once: Callable[..., Ended]) -> Ended:
    """The demo, with four workers."""
    return once("demo", *demo_commands()[0], "-n", "4")


class TestDemo:
    def test_shown(self, demo: Ended) -> None:
        """45 rows, none unusable, exit 0, a decision with reasons in sentences, the comment, and a table to look at."""
        assert demo.status == 0, demo.output[-3000:]
        assert Counter(row.outcome for row in demo.rows).keys() <= {"pass", "miss"}
        assert len({row.cell_id for row in demo.rows}) == len(demo.rows) == 45
        promotion = json.loads((demo.results / "promotion.json").read_text())
        assert promotion["decision"] == "promote"
        for decision in promotion["decisions"]:
            assert all(reason[0].isupper() and reason.endswith(".") for reason in decision["reasons"])
        assert (demo.results / "comment.md").read_text().startswith("<!-- pytest-wfbench key=")
        assert "resolved" in demo.output
        assert str(demo.results) in demo.output

    def test_arms_differ(self, demo: Ended) -> None:
        """One arm misses one task, everything else resolves; the costs differ."""
        missed = {(row.task, row.arm) for row in demo.rows if row.outcome == "miss"}
        assert len(missed) == 1
        costs: dict[str, float] = defaultdict(float)
        for row in demo.rows:
            assert row.cost_usd is not None
            costs[row.arm] += row.cost_usd
        assert len(set(costs.values())) == 5
        assert costs["candidate_workflow"] < costs["workflow"]

    def test_rows_say_what_the_cassettes_billed(self, demo: Ended) -> None:
        """With four workers at once the sums of each cell are what its cassettes say was billed, exactly."""
        scripts = load_cassettes(ROOT / "cases" / "cassettes" / "demo")
        for row in demo.rows:
            billed, turns = dict.fromkeys(FIELDS, 0), 0
            for session in ("plan", "work") if "direct" not in row.arm and "workflow" in row.arm else ("work",):
                labels = Labels(task=row.task, arm=row.arm, session=session, run=row.run, agent=row.agent)
                for turn in scripts.find(labels).turns(None):
                    assert turn.usage
                    turns += 1
                    for field in FIELDS:
                        billed[field] += getattr(turn.usage, field)
            assert {field: getattr(row.usage, field) for field in FIELDS} == billed, row.cell_id
            assert (row.num_turns, row.requests, row.failed_requests, row.usage_incomplete) == (turns, turns, 0, False)

    def test_every_request_has_its_cell(self, demo: Ended) -> None:
        """usage.jsonl attributes every request to a cell and session, and its events add up to the rows."""
        events = [event for event in demo.events if event.session != "preflight"]
        assert all(event.status == "success" and event.native_usage for event in events)
        output: dict[str, int] = defaultdict(int)
        for event in events:
            assert event.native_usage
            output[event.cell_id] += event.native_usage["output_tokens"]
        assert output == {row.cell_id: row.usage.output for row in demo.rows}
        assert len({event.call_id for event in events}) == len(events) == sum(row.requests or 0 for row in demo.rows)

    @pytest.mark.parametrize(
        ("verb", "file"), [("report", "report.md"), ("gate", "promotion.json"), ("comment", "comment.md")]
    )
    def test_derived_again(self, demo: Ended, tmp_path: Path, verb: str, file: str) -> None:
        """Each derived file can be deleted and made again from manifest and rows, byte by byte."""
        for name in ("sweep.json", "results.jsonl", "usage.jsonl"):
            (tmp_path / name).write_bytes((demo.results / name).read_bytes())
        ran = subprocess.run(
            [sys.executable, "-m", "pytest_wfbench.cli", verb, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        assert (tmp_path / file).read_bytes() == (demo.results / file).read_bytes()


class TestSelection:
    def test_one_task(self, tmp_path: Path) -> None:
        """`pytest cases -k rounding-half -n 2` runs that task only."""
        ended = sweep(tmp_path, "cases", "-k", "rounding-half", "-n", "2")
        assert ended.status == 0, ended.output[-3000:]
        assert {row.task for row in ended.rows} == {"rounding-half-even"}
        assert {row.arm for row in ended.rows} == {"baseline", "workflow", "workflow_direct"}

    def test_collect_only(self, tmp_path: Path) -> None:
        """`--collect-only -q` lists readable ids and no test of the demo repository, and spends nothing."""
        ended = sweep(tmp_path / "results", "cases", "--collect-only", "-q")
        ids = [line for line in ended.output.splitlines() if "::" in line]
        assert "cases/ledger.cases.yaml::rounding-half-even[baseline-mini:replay/demo-1]" in ids
        files = Counter(line.partition("::")[0] for line in ids)
        assert files == {
            "cases/ledger.cases.yaml": 12, "cases/reviews/reviews.cases.yaml": 6, "cases/smoke/smoke.cases.yaml": 9
        }  # fmt: skip
        assert not (tmp_path / "results").exists()


class TestEnds:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
    def test_cut_short(self, tmp_path: Path, number: signal.Signals) -> None:
        """Ctrl-C during the demo keeps the finished rows and exits 2 in 15 s; after that, or kill -9, nothing runs."""
        rows = tmp_path / "latest" / "results.jsonl"
        with started(tmp_path, "-n", "2") as process:
            until(lambda: rows.exists() and rows.read_text().count("\n") >= 2, 120, "two rows")
            everything = processes_of(process)
            assert any(runs(one, "gateway.server") for one in everything)
            if number is signal.SIGINT:
                os.killpg(process.pid, number)
                assert process.wait(15) == 2
            else:
                process.kill()
                process.wait()
            until(lambda: not living(everything), 5, f"the end of {everything}")
        assert 2 <= rows.read_text().count("\n") < 50
        sweep = json.loads((tmp_path / "latest" / "sweep.json").read_text())
        assert sweep["run_status"] == ("aborted" if number is signal.SIGINT else "running")
