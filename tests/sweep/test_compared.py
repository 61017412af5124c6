"""A sweep that is compared with a baseline, writes its step's summary, and sends its traces."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from pytest_wfbench.cli import main
from pytest_wfbench.digests import trace_id
from tests.suite import Suite
from tests.traces.receiver import Receiver, plain, receiving

SHORT = ("--wfbench-arms=baseline", "-k", "finish")


def newest(suite: Suite) -> Path:
    return (suite.path / "results/latest").resolve()


@pytest.mark.slow
def test_all_of_it(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sweep is filed; the second is worse, says so everywhere, is summed up once, and is traced."""
    monkeypatch.chdir(suite.path)
    assert suite.run(*SHORT).ret == 0
    assert main(["baseline", "add", "results/latest", "--as", "main", "--kind", "main", "--store", "filed"]) == 0
    suite.put("pytest.ini", "[pytest]\nwfbench_baselines = filed\nwfbench_trace_url = https://t.example/{trace_id}\n")
    time.sleep(1.1)  # ids of sweeps are of their second
    with receiving() as receiver:
        step = suite.path / "step.md"
        ran = suite.run(*SHORT, f"--wfbench-otlp-endpoint={receiver.root}", agent="half.sh",
                        GITHUB_STEP_SUMMARY=str(step))  # fmt: skip
    assert ran.ret == 0
    results = newest(suite)
    comment = (results / "comment.md").read_text()
    cell = json.loads((results / "results.jsonl").read_text())["cell_id"]
    trace = trace_id(results.name.removeprefix("wfbench-"), cell)
    assert "🔻 miss, was 1/1" in comment
    assert "tokens against main," in comment or "tokens against main\n" in comment
    assert f"(https://t.example/{trace})" in comment
    assert step.read_text() == comment
    assert {span.trace_id.hex() for span in receiver.spans} == {trace}
    assert plain(receiver.spans[0])["wfbench.outcome"] == "miss"
    ran.stdout.fnmatch_lines(["wfbench: sent 2 spans of 1 cell to http://127.0.0.1:*"])


@pytest.mark.slow
def test_nobody_listens(suite: Suite) -> None:
    """Traces that cannot be sent, and a summary that cannot be written, are said, and change no verdict."""
    ran = suite.run(*SHORT, "--wfbench-otlp-endpoint=http://127.0.0.1:9", GITHUB_STEP_SUMMARY=str(suite.path))
    assert ran.ret == 0
    ran.stdout.fnmatch_lines(["PASS  1/1 pass", "wfbench: GITHUB_STEP_SUMMARY was not written: *",
                              "wfbench: the traces were not sent: *"])  # fmt: skip


@pytest.mark.slow
def test_faults(suite: Suite) -> None:
    """A store, an endpoint, headers and a template that are none are usage errors, all at once, at the start."""
    suite.put("file", "")
    ran = suite.run(*SHORT, "--wfbench-baselines=file", "--wfbench-otlp-endpoint=x", "--wfbench-trace-url=http://t/x")
    assert ran.ret == 4
    told = ran.stderr.str()
    for flag in ("--wfbench-baselines", "--wfbench-otlp-endpoint", "--wfbench-trace-url"):
        assert told.count(f"{flag}:") == 1
    assert not (suite.path / "results").exists()


@pytest.mark.slow
def test_killed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that is killed leaves a comment that says INCOMPLETE, and the verb makes a fuller one."""
    process = suite.start("--wfbench-arms=baseline", agent="stuck.sh")
    place = suite.path / "results/latest/results.jsonl"
    deadline = time.monotonic() + 60
    while not (place.exists() and place.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    comment = newest(suite) / "comment.md"
    assert "### INCOMPLETE 🚧 Smoke eval — 0/0 pass" in comment.read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "step.md"))
    assert main(["comment", str(newest(suite))]) == 0
    assert "### INCOMPLETE 🚧 Smoke eval — 1/1 pass" in comment.read_text()
    assert "the sweep never ended; 1 of 2 cells without a result" in comment.read_text()
    assert (suite.path / "step.md").read_text() == comment.read_text()


def test_receiver_is_a_receiver() -> None:
    """The receiver of these tests refuses what is no export request."""
    state = Receiver()
    assert state.take("/v1/traces", {"content-type": "application/json"}, b"{}") == 415
    assert state.take("/v1/logs", {"content-type": "application/x-protobuf"}, b"") == 404
