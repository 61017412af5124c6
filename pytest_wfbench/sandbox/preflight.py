"""What must work before a cell is started, each with a remedy where it does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pytest_wfbench.sandbox.binary import BubblewrapMissing
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.host import HostSandbox, make_host
from pytest_wfbench.sandbox.identity import Identity, choose_identity, runtime_directory
from pytest_wfbench.sandbox.machine import Check, uid_check
from pytest_wfbench.sandbox.mechanisms import describe_limits
from pytest_wfbench.sandbox.remedies import host_remedy, namespace_remedy
from pytest_wfbench.sandbox.spec import GATEWAY_PORT, Command, Finished, Mount, Overlay, Sandbox, SandboxName, Tmpfs

_TIMEOUT = 20.0
_KERNEL = "use Linux 5.11 or newer, with the cache (WFBENCH_CACHE_DIR) on ext4, xfs, btrfs or tmpfs"
_THROW_AWAY = "nothing must be done: use Linux 6.6 or newer to keep them in memory"

Uppers = Literal["memory", "disk"]


def checks(directory: Path | None = None, identity: Identity | None = None) -> tuple[Check, ...]:
    """Try everything that a cell needs of the sandbox. What depends on something that failed is left out.

    Args:
        directory: where overlays are tried: where workspaces will be, else the directory of temporary files.
    """
    found = _started(identity or choose_identity())
    if isinstance(found, Check):
        return (found,)
    said = Check("bubblewrap", True, f"{found.binary.version} at {found.binary.path}{found.binary.remark}")
    isolated = _namespaces(found)
    if not isolated.ok:
        return (said, isolated)
    return (said, isolated, *_overlays(found, directory), _relay(found), _limits())


def obstacle(name: SandboxName) -> Check | None:
    """Return the first check that fails and keeps cells from running; for want of overlays they run over copies."""
    identity = choose_identity()
    if not (held := uid_check(identity)).ok and held.needed:
        return held
    if name == "host":
        return None if (trial := _host(make_host(identity))).ok else trial
    found = _started(identity)
    if isinstance(found, Check):
        return found
    return next((check for trial in (_namespaces, _relay) if not (check := trial(found)).ok), None)


def throw_away_uppers(sandbox: Sandbox, directory: Path) -> Uppers | None:
    """Say where a sandbox can have upper layers that are thrown away, for overlays of what lies in a directory.

    None where it cannot mount overlays at all. Bubblewrap tries it, once for a process.
    """
    if isinstance(sandbox, Bubblewrap):
        return _tried(sandbox, directory)
    return "memory" if sandbox.name == "bwrap" else None


@cache
def _tried(sandbox: Bubblewrap, directory: Path) -> Uppers | None:
    mounted, thrown_away = _overlays(sandbox, directory)
    if not mounted.ok:
        return None
    return "memory" if thrown_away.ok else "disk"


def _started(identity: Identity) -> Bubblewrap | Check:
    try:
        return make_bubblewrap(identity)
    except BubblewrapMissing as error:
        message, _, remedy = str(error).partition(": ")
        return Check("bubblewrap", False, message, remedy)


def _namespaces(sandbox: Bubblewrap) -> Check:
    ended = sandbox.run(Command(("/bin/true",), (Tmpfs("/workspace", 1 << 20),), _TIMEOUT))
    if ended.ok:
        return Check("namespaces", True, f"a command starts in {ended.setup_seconds * 1000:.0f} ms")
    detail = _last_line(ended)
    return Check("namespaces", False, detail, namespace_remedy(detail, sandbox.binary.path, sandbox.identity))


def _host(sandbox: HostSandbox) -> Check:
    ended = sandbox.run(Command(("/bin/true",), (), _TIMEOUT, cwd="/"))
    detail = "a command starts" if ended.ok else _last_line(ended)
    return Check("host", ended.ok, detail, None if ended.ok else host_remedy(detail, sandbox.identity))


def _overlays(sandbox: Bubblewrap, directory: Path | None = None) -> tuple[Check, Check]:
    """A changed file and a directory that replaced another must be seen through the merged and the throw-away mount."""
    with TemporaryDirectory(prefix="wfb-", dir=directory) as name:
        parent = sandbox.identity.own(Path(name))
        low, upper, work, old = (parent / part for part in ("low", "upper", "work", "low/old"))
        for path in (low, upper, work, old):
            path.mkdir()
            sandbox.identity.own(path)
        (old / "file").touch()
        written = _shell(
            sandbox, "rm -r old && mkdir old && touch old/new", Overlay((low,), "/workspace", "rw", upper, work)
        )
        merged = _shell(sandbox, "test -e old/new && test ! -e old/file", Overlay((low, upper), "/workspace", "ro"))
        thrown = _shell(
            sandbox, "rm -r old && mkdir old && test ! -e old/new", Overlay((low, upper), "/workspace", "tmp")
        )
    mounted = _of("overlays", written if not written.ok else merged, "writable and merged mounts work", _KERNEL)
    if not mounted.ok:
        return mounted, Check("throw-away uppers", False, "there are no overlays", "use overlays", needed=False)
    return mounted, _of("throw-away uppers", thrown, "in memory", _THROW_AWAY)


def _of(name: str, ended: Finished, detail: str, remedy: str) -> Check:
    """Return what one trial of an overlay says; there are workspaces without any."""
    return Check(name, True, detail) if ended.ok else Check(name, False, _last_line(ended), remedy, needed=False)


def _relay(sandbox: Bubblewrap) -> Check:
    script = f"exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT} && echo ping >&3 && head -n 1 <&3"
    with runtime_directory(sandbox.identity) as directory, _echo(directory / "echo.sock", sandbox.identity) as path:
        ended = _shell(sandbox, script, Tmpfs("/workspace", 1 << 20), gateway=path)
    if ended.stdout == b"ping\n":
        return Check("relay", True, f"port {GATEWAY_PORT} reaches a socket of the harness")
    return Check("relay", False, _last_line(ended), "report this with the output of `wfbench doctor --json`")


def _limits() -> Check:
    return Check("limits", True, *describe_limits())


@contextmanager
def _echo(path: Path, identity: Identity) -> Iterator[Path]:
    """Answer one connection with the first bytes it sends."""

    def answer() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(connection.recv(64))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        identity.own(path)
        listener.listen(1)
        listener.settimeout(_TIMEOUT)
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield path


def _shell(sandbox: Bubblewrap, script: str, mount: Mount, gateway: Path | None = None) -> Finished:
    return sandbox.run(Command(("/bin/bash", "-c", script), (mount,), _TIMEOUT, gateway=gateway))


def _last_line(ended: Finished) -> str:
    if ended.timed_out:
        return "no end within its timeout"
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {ended.status}"
