"""Whether an agent starts where it is going to run: in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pytest_wfbench.agents.base import Runtime
from pytest_wfbench.sandbox.machine import Check
from pytest_wfbench.sandbox.spec import WORKSPACE, Command, Data, Finished, Sandbox, Tmpfs

TIMEOUT = 60.0
REMEDY = "see that it, and all it needs, lies in its own directory, below /usr or in the virtual environment"


def agent_checks(runtimes: Iterable[tuple[str, Runtime]], sandbox: Sandbox) -> Iterator[Check]:
    """Try each named agent, and what is the same for several of them once. None is told anything or has a model."""
    tried: dict[tuple[object, ...], Finished] = {}
    for name, runtime in runtimes:
        # A script's own bytes have no part in whether what it names is there.
        key = (runtime.trial, tuple(mount for mount in runtime.mounts if not isinstance(mount, Data)))
        if runtime.trial and key not in tried:
            mounts = (Tmpfs(WORKSPACE, 1 << 20), *runtime.mounts)
            tried[key] = sandbox.run(Command(runtime.trial, mounts, TIMEOUT))
        yield _check(name, runtime, tried.get(key))


def _check(name: str, runtime: Runtime, ended: Finished | None) -> Check:
    if ended is None:
        return Check(name, True, runtime.version)
    said = ended.stdout.decode(errors="replace").strip()
    number = runtime.version.rpartition(" ")[2]
    numbered = re.match(r"\d+\.\d", number) is not None
    if ended.ok and (not numbered or number in said):
        return Check(name, True, f"{runtime.version}, starts in the sandbox")
    if ended.ok:
        return Check(name, False, f"is {runtime.version}, but in the sandbox it says {said[:80]!r}", REMEDY)
    lines = ended.stderr.decode(errors="replace").strip().splitlines() or [said]
    cause = "no end within its timeout" if ended.timed_out else lines[-1][:300] or f"exit status {ended.status}"
    return Check(name, False, f"does not start in the sandbox: {cause}", REMEDY)
