"""The sandboxes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.host import HostSandbox, make_host

_MAKERS: Mapping[str, Callable[[], Bubblewrap | HostSandbox]] = {"bwrap": make_bubblewrap, "host": make_host}


def make_sandbox(name: str) -> Bubblewrap | HostSandbox:
    """Return the sandbox of this machine that has a name.

    Raises:
        BubblewrapMissing: with the remedy.
        KeyError: when no sandbox has the name.
    """
    return _MAKERS[name]()
