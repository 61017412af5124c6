"""Modules as bytecode, for programs that are started once a sandbox and would be compiled each time."""

from __future__ import annotations

import importlib.util
import marshal
from functools import cache
from pathlib import Path

from pytest_wfbench.sandbox.spec import Data

# No flags, and neither date nor size of a source: there is none where it runs.
_UNBOUND = bytes(12)
_PACKAGE = Path(__file__).parents[1]
# Every process of a sandbox can read the command line of the first: it does not say the name of the package, which is
# the one thing that lies in a library.
_LAUNCH = (
    "import os, sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); "
    "[package] = os.listdir(sys.argv[1]); "
    "sys.exit(__import__(f'{package}.{sys.argv[2]}', fromlist=['main']).main(*sys.argv[3:]))"
)


@cache
def bytecode(module: str) -> bytes:
    """Return what a ``.pyc`` file of a module of this package holds, for an interpreter of the running version."""
    path = _PACKAGE / f"{module.replace('.', '/')}.py"
    code = compile(path.read_bytes(), path.name, "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + _UNBOUND + marshal.dumps(code)


@cache
def library(target: str, *modules: str) -> tuple[Data, ...]:
    """Return the files of a directory from which modules of this package can be imported."""
    return tuple(Data(f"{target}/{_PACKAGE.name}/{name.replace('.', '/')}.pyc", bytecode(name)) for name in modules)


def launching(target: str, module: str, *words: str) -> tuple[str, ...]:
    """Return how the bare interpreter runs ``main`` of a module from a library, and exits with what that returns."""
    return ("-I", "-S", "-c", _LAUNCH, target, module, *words)
