"""The harness's own Python as a sandbox sees it: the same paths, read-only."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
_COVERED = (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"), Path("/sbin"))


@dataclass(frozen=True)
class Interpreter:
    """``init`` is the bare interpreter, ``scripts`` its environment's ``bin``, ``directories`` what must be mounted.

    ``links`` are (target, path) of the links on the way from the environment to the interpreter that lie elsewhere.
    """

    init: Path
    scripts: Path
    directories: tuple[Path, ...]
    links: tuple[tuple[str, str], ...] = ()


def own_interpreter() -> Interpreter:
    """Return the running interpreter, with its virtual environment and the installation below it.

    An editable install is a path in a ``.pth`` file; where that points is not mounted.
    """
    init = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    scripts = Path(sys.prefix) / "bin"
    hops = [hop for start in (Path(sys.executable), scripts / "python3") for hop in _hops(start)]
    wanted = {Path(sys.prefix), Path(sys.base_prefix), init.parent.parent}
    wanted |= {hop.parent.parent for hop in hops if not hop.is_symlink()}
    directories = _outermost({part for prefix in wanted for part in _installed(prefix)})
    # Of a directory such as ~/.local/bin a sandbox sees the one link that it needs, and nothing beside it.
    outside = [hop for hop in dict.fromkeys(hops) if hop.is_symlink() and not _lies_in(hop, (*directories, *_COVERED))]
    return Interpreter(init, scripts, directories, tuple((str(hop.readlink()), str(hop)) for hop in outside))


def _installed(prefix: Path) -> list[Path]:
    """Return what is Python's of a prefix that may be a person's own directory, such as the home, too."""
    home = Path.home()
    if not home.is_relative_to(prefix) and prefix != home / ".local":
        return [prefix]
    return [part for part in (prefix / name for name in _PARTS) if part.exists()]


def _lies_in(path: Path, directories: Iterable[Path]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)


def _hops(path: Path) -> list[Path]:
    """Return the path and every path its chain of links names."""
    hops = [Path(os.path.normpath(path))]
    while hops[-1].is_symlink() and len(hops) < 40:
        hops.append(Path(os.path.normpath(hops[-1].parent / hops[-1].readlink())))
    return hops


def _outermost(paths: set[Path]) -> tuple[Path, ...]:
    kept: list[Path] = []
    for path in sorted(paths):
        if not _lies_in(path, (*kept, *_COVERED)):
            kept.append(path)
    return tuple(kept)
