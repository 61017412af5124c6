"""Cells: task × variation × arm × subject × run, with ids that are path-safe and stable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_wfbench.digests import digest_value
from pytest_wfbench.matrix.arms import Arm
from pytest_wfbench.matrix.subject import Subject
from pytest_wfbench.matrix.task import McpServer, Task

UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
ID_DIGEST = 10

# Three clipped parts, two numbers and the digest stay well below the 255 bytes a file name may have.
CLIP = 60


@dataclass(frozen=True)
class Cell:
    """One pytest item and one row. ``variation`` 0 is the original wording; ``run`` counts from 1."""

    task: Task
    variation: int
    arm: Arm
    subject: Subject
    run: int

    @property
    def parameter(self) -> str:
        """What stands between the brackets of the node id."""
        return f"{self.arm.name}-{self.subject}-{self.run}"

    @property
    def name(self) -> str:
        """What stands before the brackets of the node id."""
        return self.task.id + (f"~v{self.variation}" if self.variation else "")

    @property
    def mcp(self) -> Mapping[str, McpServer]:
        """The MCP servers that its agent has: the task's, unless the arm goes without."""
        return self.task.mcp if self.arm.mcp == "inherit" else {}

    @property
    def id(self) -> str:
        """A path-safe id that ends in a short digest of its parts, so that no two collide."""
        parts = (self.task.id, f"v{self.variation}", self.arm.name, str(self.subject), f"r{self.run}")
        digest = digest_value(parts).removeprefix("sha256:")[:ID_DIGEST]
        return ".".join([*(UNSAFE.sub("-", part)[:CLIP] for part in parts), digest])


def expand(tasks: Iterable[Task], arms: Sequence[Arm], subjects: Sequence[Subject], runs: int) -> Iterator[Cell]:
    """Yield the cells in their one order: task, variation, run, arm, subject.

    Runs stand outside arms so that an interrupted sweep holds whole pairs. An arm that does not fit a task's kind is
    not paired with it.
    """
    for task in tasks:
        fitting = [arm for arm in arms if task.kind in arm.kinds]
        for variation in range(len(task.variations) + 1):
            for run in range(1, runs + 1):
                for arm in fitting:
                    for subject in subjects:
                        yield Cell(task, variation, arm, subject, run)
