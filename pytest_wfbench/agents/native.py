"""Agents that come as one native binary: where it is, which version it says it is, and the search tool it expects."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.agents.base import AgentUnavailable, Runtime
from pytest_wfbench.agents.pinned import agents_directory
from pytest_wfbench.sandbox.process import run_process
from pytest_wfbench.sandbox.spec import Bind, Mount

TOOLS = "/opt/wfbench/tools"
VERSION_TIMEOUT = 20.0
# The spellings that Node gives to a machine's architecture, in the names of the native packages.
_NODE = {"x86_64": "x64", "aarch64": "arm64"}
_SYSTEM = Path("/usr")
_WITH_TOOLS = 'PATH="$0:$PATH" exec "$@"'


@dataclass(frozen=True)
class Native:
    """One agent's binary.

    ``command`` is its name on PATH, ``pinned`` a glob below ``node_modules`` in which ``{node}`` stands for Node's name
    of the architecture, ``version`` a pattern whose group is the version in the output of ``--version``.
    """

    agent: str
    command: str
    pinned: str
    target: str
    version: str

    @property
    def remedy(self) -> str:
        """What to do where it is missing."""
        return f"run `make agents`, or put the native `{self.command}` on PATH"

    def find(self, mounts: Sequence[Mount] = ()) -> Runtime:
        """Take the native binary from PATH, else the pinned one from the cache.

        Raises:
            AgentUnavailable: when there is none, or it does not say its version.
        """
        binary = next(self._binaries(), None)
        if binary is None:
            raise AgentUnavailable(f"{self.agent} is not installed; {self.remedy}")
        version = f"{self.agent} {self._version(binary)}"
        shown = (Bind(binary, self.target), *mounts)
        return Runtime(version, mounts=shown, mcp=True, trial=(self.target, "--version"))

    def _binaries(self) -> Iterator[Path]:
        """Yield native binaries, best first: on PATH, beside the Node script on PATH that would start it, pinned."""
        name = self.pinned.format(node=_NODE.get(platform.machine(), platform.machine()))
        if on_path := shutil.which(self.command):
            found = Path(on_path).resolve()
            beside = [path for modules in _modules_around(found) for path in sorted(modules.glob(name))]
            yield from (path for path in (found, *beside) if _is_native(path))
        yield from filter(_is_native, _pinned(name))

    def _version(self, binary: Path) -> str:
        with tempfile.TemporaryDirectory() as home:
            env = {"HOME": home, "PATH": os.defpath, "DISABLE_AUTOUPDATER": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
            ran = run_process([str(binary), "--version"], env=env, cwd=Path(home), timeout=VERSION_TIMEOUT)
        found = re.match(self.version, ran.stdout.decode(errors="replace"))
        if not ran.ok or found is None:
            raise AgentUnavailable(f"{binary} does not say its version (exit status {ran.status}); {self.remedy}")
        return found[1]


def _pinned(pattern: str) -> list[Path]:
    return sorted((agents_directory() / "node_modules").glob(pattern))


def _modules_around(script: Path) -> Iterator[Path]:
    """Yield the ``node_modules`` in which Node would look for what a script needs, the nearest first."""
    yield from (parent / "node_modules" for parent in script.parents if parent.name != "node_modules")


def _is_native(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return os.access(path, os.X_OK) and stream.read(4) == b"\x7fELF"
    except OSError:
        return False


def search_tool() -> tuple[Mount, ...] | None:
    """Return what a sandbox needs for ``rg`` in ``TOOLS`` or on its PATH: no mount where the system has it.

    None says that there is none. The pinned one lies alone in a directory of codex's package.
    """
    found = shutil.which("rg")
    if found and Path(found).resolve().is_relative_to(_SYSTEM):
        return ()
    directories = [path.parent for path in _pinned("@openai/codex-linux-*/vendor/*/codex-path/rg")]
    return (Bind(directories[0], TOOLS),) if directories else None


def with_tools(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line whose command finds what lies in ``TOOLS`` first."""
    return ("/bin/sh", "-c", _WITH_TOOLS, TOOLS, *argv)
