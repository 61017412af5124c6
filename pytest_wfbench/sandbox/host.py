"""The name ``host`` of ``--wfbench-sandbox``: no boundary at all."""

from __future__ import annotations

from pytest_wfbench.sandbox.spec import Command, Finished, SandboxName


class HostUnsupported(Exception):
    """The command needs namespaces."""


class Host:
    """A sandbox that is none. It cannot lay paths over those of the host, so every command with mounts is refused."""

    name: SandboxName = "host"

    def run(self, command: Command) -> Finished:
        """Refuse the command.

        Raises:
            HostUnsupported: always, for now.
        """
        raise HostUnsupported("--wfbench-sandbox=host cannot run a cell yet: use Linux with user namespaces")
