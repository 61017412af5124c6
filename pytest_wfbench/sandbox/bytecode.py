"""Modules as bytecode, for programs that are started once a sandbox and would be compiled each time."""

from __future__ import annotations

import importlib.util
import marshal
from pathlib import Path

# No flags, and neither date nor size of a source: there is none where it runs.
_UNBOUND = bytes(12)


def bytecode(path: Path) -> bytes:
    """Return what a ``.pyc`` file of a module holds, for an interpreter of the running version."""
    code = compile(path.read_bytes(), path.name, "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + _UNBOUND + marshal.dumps(code)
