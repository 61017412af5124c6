"""The harness's own Python as a sandbox sees it: the same paths, read-only."""

from __future__ import annotations

import os.path
import sys
from dataclasses import dataclass
from pathlib import Path

_COVERED = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"), Path("/sbin"))


@dataclass(frozen=True)
class Interpreter:
    """``init`` is the bare interpreter, ``scripts`` its environment's ``bin``, ``directories`` what must be mounted."""

    init: Path
    scripts: Path
    directories: tuple[Path, ...]


def own_interpreter() -> Interpreter:
    """Return the running interpreter, with its virtual environment and the installation below it.

    An editable install is a path in a ``.pth`` file; where that points is not mounted.
    """
    init = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    scripts = Path(sys.prefix) / "bin"
    wanted = {Path(sys.prefix), Path(sys.base_prefix), init.parent.parent}
    for start in (Path(sys.executable), scripts / "python3"):
        wanted |= {hop.parent.parent for hop in _hops(start)}
    return Interpreter(init, scripts, _outermost(wanted))


def _hops(path: Path) -> list[Path]:
    """Return the path and every path its chain of links names: a link's directory must exist in the sandbox too."""
    hops = [Path(os.path.normpath(path))]
    while hops[-1].is_symlink() and len(hops) < 40:
        hops.append(Path(os.path.normpath(hops[-1].parent / hops[-1].readlink())))
    return hops


def _outermost(paths: set[Path]) -> tuple[Path, ...]:
    kept: list[Path] = []
    for path in sorted(paths):
        if not any(path.is_relative_to(other) for other in (*kept, *_COVERED)):
            kept.append(path)
    return tuple(kept)
