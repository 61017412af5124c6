"""What must work before a cell is started, each with a remedy where it does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_wfbench.sandbox.binary import BubblewrapMissing
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap, make_bubblewrap
from pytest_wfbench.sandbox.identity import Identity, choose_identity, runtime_directory
from pytest_wfbench.sandbox.spec import GATEWAY_PORT, Command, Finished, Mount, Overlay, Sandbox, SandboxName, Tmpfs

_HOST = "or use --wfbench-sandbox=host, which is no boundary"
_OVERLAYS = "overlays"
_TIMEOUT = 20.0


@dataclass(frozen=True)
class Check:
    """One thing that was tried. ``detail`` says what was found, ``remedy`` what to do where it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


def checks(identity: Identity | None = None) -> tuple[Check, ...]:
    """Try everything that a cell needs of the sandbox. What depends on something that failed is left out."""
    try:
        sandbox = make_bubblewrap(identity or choose_identity())
    except BubblewrapMissing as error:
        return (Check("bubblewrap", False, "not found", str(error)),)
    found = Check("bubblewrap", True, f"{sandbox.binary.version} at {sandbox.binary.path}")
    isolated = _namespaces(sandbox)
    if not isolated.ok:
        return (found, isolated)
    return (found, isolated, _overlays(sandbox), _relay(sandbox), _limits())


def obstacle(name: SandboxName) -> Check | None:
    """Return the first check that fails and keeps cells from running; for want of overlays they run over copies."""
    if name == "host":
        return None
    return next((check for check in checks() if not check.ok and check.name != _OVERLAYS), None)


def mounts_overlays(sandbox: Sandbox, directory: Path) -> bool:
    """Whether a sandbox can mount overlays of what lies in a directory; bubblewrap tries it, once for a process."""
    return _tried(sandbox, directory) if isinstance(sandbox, Bubblewrap) else sandbox.name == "bwrap"


@cache
def _tried(sandbox: Bubblewrap, directory: Path) -> bool:
    return _overlays(sandbox, directory).ok


def _namespaces(sandbox: Bubblewrap) -> Check:
    ended = sandbox.run(Command(("/bin/true",), (Tmpfs("/workspace", 1 << 20),), _TIMEOUT))
    if ended.ok:
        return Check("namespaces", True, f"a command starts in {ended.setup_seconds * 1000:.0f} ms")
    detail = _last_line(ended)
    return Check("namespaces", False, detail, namespace_remedy(detail, sandbox.binary.path))


def namespace_remedy(message: str, binary: Path) -> str:
    """Return what to do where bubblewrap fails with a message."""
    if "uid map: Permission denied" in message or "RTM_NEWADDR" in message:
        profile = f'abi <abi/4.0>,\nprofile bwrap-wfbench "{binary}" flags=(unconfined) {{\n  userns,\n}}'
        return (
            "AppArmor forbids user namespaces to this program. Put this into /etc/apparmor.d/bwrap-wfbench and run "
            f"`apparmor_parser -r /etc/apparmor.d/bwrap-wfbench`:\n{profile}\n"
            f"or, for every program, `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, {_HOST}"
        )
    if "Can't mount proc" in message:
        return f"the container masks /proc: start it with `--security-opt systempaths=unconfined`, {_HOST}"
    return (
        "allow user namespaces (`sysctl user.max_user_namespaces=10000`, on Debian also "
        f"`kernel.unprivileged_userns_clone=1`; in a container `--security-opt seccomp=unconfined`), {_HOST}"
    )


def _overlays(sandbox: Bubblewrap, directory: Path | None = None) -> Check:
    """A changed file and a directory that replaced another must be seen through the merged and the throw-away mount."""
    with TemporaryDirectory(prefix="wfb-", dir=directory) as name:
        parent = sandbox.identity.own(Path(name))
        low, upper, work, old = (parent / part for part in ("low", "upper", "work", "low/old"))
        for path in (low, upper, work, old):
            path.mkdir()
            sandbox.identity.own(path)
        (old / "file").touch()
        lines = (
            ("rm -r old && mkdir old && touch old/new", Overlay((low,), "/workspace", "rw", upper, work)),
            ("test -e old/new && test ! -e old/file", Overlay((low, upper), "/workspace", "ro")),
            ("rm -r old && mkdir old && test ! -e old/new", Overlay((low, upper), "/workspace", "tmp")),
        )
        for script, mount in lines:
            ended = _shell(sandbox, script, mount)
            if not ended.ok:
                remedy = "use Linux 5.11 or newer, with the cache (WFBENCH_CACHE_DIR) on ext4, xfs, btrfs or tmpfs"
                return Check(_OVERLAYS, False, f"{mount.mode}: {_last_line(ended)}", remedy)
    return Check(_OVERLAYS, True, "writable, merged and throw-away mounts work")


def _relay(sandbox: Bubblewrap) -> Check:
    script = f"exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT} && echo ping >&3 && head -n 1 <&3"
    with runtime_directory(sandbox.identity) as directory, _echo(directory / "echo.sock", sandbox.identity) as path:
        ended = _shell(sandbox, script, Tmpfs("/workspace", 1 << 20), gateway=path)
    if ended.stdout == b"ping\n":
        return Check("relay", True, f"port {GATEWAY_PORT} reaches a socket of the harness")
    return Check("relay", False, _last_line(ended), "report this with the output of `wfbench doctor --json`")


def _limits() -> Check:
    return Check("limits", True, "resource limits inside the sandbox: processes, file size, address space; wall clock")


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
