"""What a cell changed, told apart from what cannot be told because of what its agent left."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_wfbench.sandbox.spec import WORKSPACE, Command, Sandbox, Tmpfs
from pytest_wfbench.workspace.churn import Change, changed
from pytest_wfbench.workspace.overlay import Workspace
from pytest_wfbench.workspace.program import ProgramFailed

PROBE_SECONDS = 20.0


class Unreadable(Exception):
    """What the agent left cannot be read (closed directories, paths too long): the candidate's doing."""


def changes_of(workspace: Workspace, sandbox: Sandbox, plans: Iterable[str] = ()) -> Change:
    """Return what was changed so far.

    Raises:
        Unreadable: when the workspace is at fault.
        ProgramFailed: when the sandbox is: it cannot run a command over an empty directory either.
    """
    try:
        return changed(workspace, sandbox, plans=plans)
    except ProgramFailed:
        if not sandbox.run(Command(("/bin/true",), (Tmpfs(WORKSPACE, 1 << 16),), PROBE_SECONDS)).ok:
            raise
    # What failed once may have been the machine's doing; what the agent left fails every time.
    try:
        return changed(workspace, sandbox, plans=plans)
    except ProgramFailed as error:
        lines = str(error).strip().splitlines()
        said = [line for line in lines if "Error: " in line] or lines
        cause = said[-1] if said else "no reason given"
        raise Unreadable(f"what the agent left cannot be read: {cause}") from error
