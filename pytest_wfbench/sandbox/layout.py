"""Where the names that a command uses lie on the host, for a sandbox that has no namespaces to lay them out in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_wfbench.sandbox.identity import Identity
from pytest_wfbench.sandbox.spec import GATEWAY_URL, HOME, Bind, Command, Data, Mount, Overlay, Tmpfs

# What lies below these is the harness's own, so that a directory above several targets can be named too.
_OWN = ("/run/wfbench", "/opt/wfbench", HOME)


class CannotLayOut(Exception):
    """A mount that needs a namespace."""


@dataclass(frozen=True)
class Layout:
    """``places`` are (target, host path), the longest target first; ``gateway`` is the URL that reaches it, if any."""

    places: tuple[tuple[str, str], ...]
    gateway: str | None

    def path(self, name: str) -> str:
        """Return the host path for a name at or below a target; any other name as it is."""
        for target, place in self.places:
            if name == target or name.startswith(f"{target}/"):
                return place + name[len(target) :]
        return name

    def word(self, text: str) -> str:
        """Return a text with a target at its start and the gateway's URL anywhere replaced."""
        return self.path(text if self.gateway is None else text.replace(GATEWAY_URL, self.gateway))

    def argv(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command line. The text after ``-c`` is a program in some language, and stays as it is."""
        before = ("", *words)
        return tuple(word if last == "-c" else self.word(word) for last, word in zip(before, words, strict=False))


def lay_out(command: Command, root: Path, identity: Identity, gateway: str | None) -> Layout:
    """Write the files of a command below ``root``, an empty directory of the identity's, and say where all is.

    Nothing is read-only. A mount inside another's target must be there already, and is then left as it is.

    Raises:
        CannotLayOut: for mounts that need a namespace, and sources that do not exist.
    """
    places = {target: str(root) + target for target in _OWN}
    for target in (*_OWN, "/tmp"):
        _directory(root, target, identity)
    for mount in command.mounts:
        above = _above(mount, command.mounts)
        if above is None:
            places[mount.target] = str(_place(mount, root, identity, gateway))
        elif not (_source(above) / mount.target[len(above.target) + 1 :]).exists():
            raise CannotLayOut(f"{mount.target}: without namespaces nothing can be laid over {above.target}")
    return Layout(tuple(sorted(places.items(), key=lambda pair: -len(pair[0]))), gateway)


def _above(mount: Mount, mounts: Sequence[Mount]) -> Bind | Overlay | None:
    """Return the mount of a host directory in which another one lies."""
    around = (other for other in mounts if mount.target.startswith(f"{other.target}/"))
    return next((other for other in around if isinstance(other, Bind | Overlay)), None)


def _place(mount: Mount, root: Path, identity: Identity, gateway: str | None) -> Path:
    match mount:
        case Bind() | Overlay():
            return _source(mount)
        case Tmpfs(target):
            return _directory(root, target, identity)
        case Data(target, data, mode):
            place = _directory(root, target.rpartition("/")[0], identity) / target.rpartition("/")[2]
            if gateway is not None and target.startswith(f"{HOME}/"):
                data = data.replace(GATEWAY_URL.encode(), gateway.encode())
            place.write_bytes(data)
            place.chmod(mode)
            return identity.own(place)


def _source(mount: Bind | Overlay) -> Path:
    if isinstance(mount, Overlay) and (mount.mode != "ro" or len(mount.lowers) != 1):
        raise CannotLayOut(f"{mount.target}: without namespaces there are no overlays")
    source = mount.source if isinstance(mount, Bind) else mount.lowers[0]
    if not source.exists():
        raise CannotLayOut(f"{source}: no such file or directory")
    return source


def _directory(root: Path, target: str, identity: Identity) -> Path:
    place = Path(str(root) + target)
    for path in reversed(list(_missing(place, root))):
        path.mkdir(mode=0o755)
        identity.own(path)
    return place


def _missing(place: Path, root: Path) -> Iterator[Path]:
    while place != root and not place.exists():
        yield place
        place = place.parent
