"""Keeps a command from starting until its sandbox's first process is in a control group."""

from __future__ import annotations

import os

from pytest_wfbench.sandbox.cgroups import Group
from pytest_wfbench.sandbox.channels import Channels

_START_SECONDS = 20.0


class Gate:
    """Bubblewrap waits at it, with its namespaces made and nothing of the command started."""

    def __init__(self, channels: Channels, group: Group) -> None:
        self._channels = channels
        self._group = group
        closed, self._bolt = channels.gate()
        self.words = ("--block-fd", str(closed))

    def open(self, _: int) -> None:
        """Put the sandbox's first process, which has no child yet, into the group, and let it go on.

        Raises:
            OSError: when it cannot be put there: no command runs without its limits.
        """
        child = self._channels.await_child(_START_SECONDS)
        if child is not None:
            self._group.admit(child)
        os.write(self._bolt, b"1")
