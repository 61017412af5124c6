"""Limits for all tasks, and what a task says of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_wfbench.matrix.bindings import bind_task
from pytest_wfbench.matrix.defaults import with_limits
from pytest_wfbench.matrix.hidden import HiddenFiles
from pytest_wfbench.matrix.load import LoadedTask
from pytest_wfbench.matrix.task import Limits, Task

MIB = 1 << 20


def loaded(**limits: object) -> LoadedTask:
    own = {"limits": limits} if limits else {}
    task = Task.model_validate({"id": "t", "kind": "question", "prompt": "Why?", "rubric": "r", **own})
    return LoadedTask(task=task, file=Path("a.cases.yaml"), line=1, oracle_root=None, hidden=HiddenFiles())


class TestWithLimits:
    def test_for_tasks_without_their_own(self) -> None:
        """What is given holds for every task, field by field, but for what a task sets itself."""
        given = {"memory": "512MiB", "processes": "64", "disk": None, "inodes": "1000", "file_size": None}
        found, problems = with_limits([loaded(), loaded(memory="1GiB", processes=512)], given)
        assert problems == []
        assert found[0].task.limits == Limits(memory=512 * MIB, processes=64, inodes=1000)
        assert found[1].task.limits == Limits(memory=1024 * MIB, processes=512, inodes=1000)

    def test_default_written_down_is_a_tasks_own(self) -> None:
        """A task that sets the usual value has set it."""
        found, _ = with_limits([loaded(disk="4GiB")], {"disk": "1MiB"})
        assert found[0].task.limits.disk == 4 << 30

    def test_effective_values_are_bound(self) -> None:
        """The digest of a task is that of its effective limits, wherever they were written."""
        given, _ = with_limits([loaded()], {"inodes": "1000"})
        own, _ = with_limits([loaded(inodes=1000)], {})
        plain, _ = with_limits([loaded()], {})
        digests = [bind_task(one[0], 0).task for one in (given, own, plain)]
        assert digests[0] == digests[1] != digests[2]

    @pytest.mark.parametrize(
        ("name", "text", "words"),
        [
            ("memory", "8 GB", "Write 512MiB or 8GiB"),
            ("memory", "0B", "at least 1B"),
            ("processes", "many", "processes"),
            ("processes", "3", "8"),
            ("inodes", "-1", "inodes"),
            ("file_size", "1e9", "512MiB"),
        ],
    )
    def test_bad_values(self, name: str, text: str, words: str) -> None:
        """A value that does not read is a problem that names its option and the remedy."""
        _, problems = with_limits([loaded()], {name: text})
        assert len(problems) == 1
        assert words in f"{problems[0]}"
        assert f"--wfbench-limit-{name.replace('_', '-')}" in str(problems[0])
