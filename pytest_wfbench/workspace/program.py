"""Runs a part of this package inside a sandbox, by the bare interpreter, on a value, and returns what it prints."""

from __future__ import annotations

import json
import marshal
from collections.abc import Sequence
from typing import Any

from pytest_wfbench.sandbox.bytecode import launching, library
from pytest_wfbench.sandbox.spec import STREAM, WORKSPACE, Bounds, Command, Mount, Sandbox

_LIBRARY = "/run/wfbench/lib"
_MODULES = ("light", "fastimport", "traces", "inside", "files_inside")
_BOUNDS = Bounds(file_size=8 << 30)


class ProgramFailed(Exception):
    """The harness's own work in a sandbox did not end well; the message is the tail of its standard error."""


def run_inside(
    sandbox: Sandbox,
    module: str,
    task: str,
    value: Any,
    mounts: Sequence[Mount],
    timeout: float = 300.0,
    places: tuple[str, ...] = (),
) -> Any:
    """Return the JSON value that a task of a module gives for a value of plain tuples, texts, bytes and numbers.

    It runs in the workspace. ``places`` are other mount targets that it is to know: they travel as words of the
    command line, since a value is not looked into by a sandbox that has to say where they really are.

    Raises:
        ProgramFailed: when it does not exit 0, or takes longer than ``timeout`` seconds.
    """
    argv = ("python3", *launching(_LIBRARY, f"workspace.{module}", task, *places))
    command = Command(
        argv,
        (*mounts, *library(_LIBRARY, "sandbox.plain", *(f"workspace.{name}" for name in _MODULES))),
        timeout,
        cwd=WORKSPACE,
        stdin=marshal.dumps(value),
        bounds=_BOUNDS,
        stdout_limit=STREAM,
        keep="whole",
    )
    ended = sandbox.run(command)
    if not ended.ok:
        cause = "no end within its timeout" if ended.timed_out else ended.stderr.decode(errors="replace").strip()
        raise ProgramFailed(f"{task}: {cause[-1000:] or f'exit status {ended.status}'}")
    return json.loads(ended.stdout)
