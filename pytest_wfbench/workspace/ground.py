"""What workspaces are on this machine: overlays where they can be mounted, else copies. Found out by trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.preflight import Uppers, throw_away_uppers
from pytest_wfbench.sandbox.spec import Sandbox
from pytest_wfbench.workspace.copies import open_copy
from pytest_wfbench.workspace.copying import copy_kind
from pytest_wfbench.workspace.overlay import Workspace, WorkspaceKind, open_workspace
from pytest_wfbench.workspace.startstate import StartState


@dataclass(frozen=True)
class Ground:
    """Where workspaces are made. ``uppers`` says where throw-away ones lie; none: there are copies, not overlays."""

    scratch: Path
    identity: Identity
    uppers: Uppers | None

    @property
    def copies(self) -> bool:
        """Whether start states must be copies too."""
        return self.uppers is None

    @property
    def kind(self) -> WorkspaceKind:
        """The kind of workspace that there will be."""
        if self.uppers:
            return "overlay"
        with NamedTemporaryFile(dir=self.scratch) as sample:
            sample.write(bytes(4096))
            sample.flush()
            return copy_kind(Path(sample.name), self.scratch)

    def open(self, start: StartState) -> Workspace:
        """Return a new workspace over a start state that was made for this ground.

        Raises:
            CopyFailed: when it is to be copied and cannot.
        """
        if self.uppers is None:
            return open_copy(start, self.scratch, self.identity)
        return open_workspace(start, self.scratch, self.identity, self.uppers)


def survey(sandbox: Sandbox, scratch: Path, identity: Identity) -> Ground:
    """Find out what a sandbox can mount below a directory of the identity's; asked again, it is remembered."""
    return Ground(scratch, identity, throw_away_uppers(sandbox, scratch))
