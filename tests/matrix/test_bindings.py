"""The digests that bind a row to what was asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_wfbench.matrix.bindings import bind_task, overlay_digest, proof_digest
from pytest_wfbench.matrix.load import Loaded, LoadedTask

Read = Callable[..., Loaded]

TASK = """\
kind: implementation
tasks:
  - id: one
    repo: repo
    prompt: Do it.
    variations: [Please do it.]
    verify: make
    oracle: {command: sh $WFBENCH_ORACLE_ROOT/check.sh, files: [{source: check.sh, target: check.sh}], results: exit}
"""


def one(loaded: Loaded) -> LoadedTask:
    assert not loaded.problems, str(loaded.problems)
    return loaded.tasks[0]


class TestTask:
    @pytest.mark.parametrize(
        "line",
        ["setup: x", "private: [a]", "timeout: 3m", "limits: {memory: 1GiB}", "provider_tools: [web]",
         "mcp: {a: {command: [b]}}", "dependencies: [{source: a, target: /opt/b}]"],
    )  # fmt: skip
    def test_what_it_covers(self, read: Read, line: str) -> None:
        """What changes a cell's course changes the task's digest, and not the prompt's."""
        before, after = (bind_task(one(read(TASK + more)), 0) for more in ("", f"    {line}\n"))
        assert before.task != after.task
        assert (before.prompt, before.oracle) == (after.prompt, after.oracle)

    @pytest.mark.parametrize("line", ["tags: [a]", "class: trivial", "expensive: true"])
    def test_what_it_does_not(self, read: Read, line: str) -> None:
        """A label changes nothing that was measured."""
        assert bind_task(one(read(TASK)), 0) == bind_task(one(read(TASK + f"    {line}\n")), 0)

    def test_wordings(self, read: Read) -> None:
        """Each wording has its own digest of prompt and task."""
        task = one(read(TASK))
        assert bind_task(task, 0).prompt != bind_task(task, 1).prompt
        assert bind_task(task, 0).task != bind_task(task, 1).task

    def test_oracle_bytes(self, read: Read, tmp_path: Path) -> None:
        """A byte of the oracle, or its command, changes its digests and voids its proof."""
        before = one(read(TASK))
        after = one(read(TASK.replace("sh $", "bash $")))
        assert bind_task(before, 0).oracle_command != bind_task(after, 0).oracle_command
        assert proof_digest(before) != proof_digest(after)
        (tmp_path / "oracles" / "check.sh").write_text("exit 1\n")
        changed = one(read(TASK))
        assert bind_task(before, 0).oracle != bind_task(changed, 0).oracle
        assert bind_task(before, 0).oracle_manifest == bind_task(changed, 0).oracle_manifest
        assert proof_digest(before) != proof_digest(changed)

    def test_without_an_oracle(self, read: Read) -> None:
        """A task without an oracle has no digest of one, rather than that of nothing."""
        binding = bind_task(one(read("tasks: [{id: a, kind: question, prompt: b, rubric: c}]")), 0)
        assert dataclasses.astuple(binding)[1:4] == (None, None, None)

    def test_another_place(self, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another checkout of the same files has the same digests."""
        before = bind_task(one(read(TASK)), 0)
        monkeypatch.chdir("/")
        assert bind_task(one(read(TASK)), 0) == before


class TestOverlay:
    def test_order_and_nothing(self) -> None:
        """An overlay's digest does not depend on order; no overlay has none."""
        assert overlay_digest({"a": b"1", "b": b"2"}) == overlay_digest({"b": b"2", "a": b"1"})
        assert overlay_digest({"a": b"1", "b": b"2"}) != overlay_digest({"a": b"2", "b": b"1"})
        assert overlay_digest({}) is None
