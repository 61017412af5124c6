"""The sandbox: bubblewrap with namespaces of its own, never root, no network, an allowlist of what is visible."""

from __future__ import annotations

import marshal
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_wfbench.sandbox import init
from pytest_wfbench.sandbox.binary import Binary, find_bubblewrap
from pytest_wfbench.sandbox.bytecode import launching, library
from pytest_wfbench.sandbox.cgroups import Delegation, Group, find_delegation, new_group
from pytest_wfbench.sandbox.channels import Channels, Story, judge
from pytest_wfbench.sandbox.gate import Gate
from pytest_wfbench.sandbox.identity import Identity, choose_identity
from pytest_wfbench.sandbox.interpreter import Interpreter, own_interpreter
from pytest_wfbench.sandbox.limits import PRIVATE, resource_limits, settle, watch_sandbox
from pytest_wfbench.sandbox.process import run_process
from pytest_wfbench.sandbox.rootfs import UID, environment, system_links, system_mounts
from pytest_wfbench.sandbox.spec import (
    GATEWAY_PORT,
    Bind,
    Command,
    Data,
    Finished,
    Mount,
    Overlay,
    SandboxName,
    Tmpfs,
)
from pytest_wfbench.sandbox.staging import Staging, plan_staging
from pytest_wfbench.sandbox.syscalls import peeping_filter

GATEWAY_SOCKET = "/run/wfbench/gateway.sock"
# Where nothing can be written: what the first process imports is what is here.
_LIBRARY = "/opt/wfbench/init"
_MODULES = ("sandbox.plain", "sandbox.init")
_NAMESPACES = (
    "--unshare-user", "--uid", str(UID), "--gid", str(UID), "--unshare-pid", "--unshare-ipc", "--unshare-uts",
    "--unshare-cgroup-try", "--unshare-net", "--hostname", "sandbox", "--die-with-parent", "--new-session",
    "--as-pid-1", "--cap-drop", "ALL", "--disable-userns", "--clearenv", "--dev", "/dev",
)  # fmt: skip
_PROC = ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
_NO_PROC = ("--dir", "/proc")
_SEALED = ("--remount-ro", "/dev", "--remount-ro", "/")
_LAUNCH_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@dataclass(frozen=True)
class Bubblewrap:
    """A sandbox whose commands run under ``identity`` with ``binary``, and see the harness's own ``interpreter``.

    ``cancel``, once set, ends every command that runs. ``delegation`` is where each has a control group, if anywhere.
    """

    identity: Identity
    binary: Binary
    interpreter: Interpreter
    cancel: threading.Event | None = None
    delegation: Delegation | None = None
    name: SandboxName = "bwrap"

    def run(self, command: Command) -> Finished:
        """Run one command to its end, its timeout or its limit, and leave nothing of it behind."""
        began = time.monotonic_ns()
        system, own = system_mounts(self.interpreter, command.bounds), (*_of_init(command), *command.mounts)
        mounts = (*system, *own)
        staging = plan_staging(_sources(own), self.identity, (self.binary.path, *_sources(system)))
        with Channels() as channels, new_group(self.delegation, command.bounds) as group:
            proc = _PROC if command.processes_shown else _NO_PROC
            listed = [*_NAMESPACES, *proc, *_links(system_links()), *_mounted(mounts, staging, channels.file)]
            listed += _links(self.interpreter.links)
            listed += [*_sealed(mounts), *_SEALED, *_filtered(channels.file)]
            listed += ["--chdir", command.cwd, "--json-status-fd", str(channels.status)]
            gate = Gate(channels, group) if group is not None else None
            listed += gate.words if gate is not None else ()
            watch = watch_sandbox(command.mounts, command.bounds, channels, group)
            order = channels.file(marshal.dumps(self._order(command, channels, group).plain()))
            first = [str(self.interpreter.init), *launching(_LIBRARY, "sandbox.init", str(order))]
            bubblewrap = [str(staging.place(self.binary.path)), "--args", str(channels.file(_zero_ended(listed)))]
            ended = run_process(
                [*staging.launch(self.identity), *bubblewrap, "--", *first],
                env=_LAUNCH_ENV,
                timeout=command.timeout,
                stdin=command.stdin,
                stdout_limit=command.stdout_limit,
                keep=command.keep,
                user=None if staging.units else self.identity,
                pass_fds=(*channels.passed, channels.status),
                stop=channels.ask_to_stop,
                cancel=command.cancel or self.cancel,
                on_start=gate.open if gate is not None else None,
                watch=watch,
                dialogue=command.dialogue,
                guarded=bool(staging.units),
            )
            story = Story.read(channels)
            return settle(judge(ended, story, began), command.bounds, watch, story)

    def _order(self, command: Command, channels: Channels, group: Group | None) -> init.Order:
        return init.Order(
            argv=command.argv,
            env=environment(self.interpreter, command.env),
            limits=resource_limits(command.bounds, grouped=group is not None),
            gateway=GATEWAY_SOCKET if command.gateway is not None else "",
            port=GATEWAY_PORT,
            control=channels.control,
            report=channels.report,
            private=PRIVATE,
        )


def make_bubblewrap(identity: Identity | None = None, cancel: threading.Event | None = None) -> Bubblewrap:
    """Return the sandbox of this machine.

    Raises:
        BubblewrapMissing: with the remedy.
    """
    return Bubblewrap(identity or choose_identity(), find_bubblewrap(), own_interpreter(), cancel, _delegation())


@cache
def _delegation() -> Delegation | None:
    found = find_delegation()
    return found if isinstance(found, Delegation) else None


def _of_init(command: Command) -> tuple[Mount, ...]:
    if command.gateway is None:
        return library(_LIBRARY, *_MODULES)
    door = Bind(command.gateway, GATEWAY_SOCKET, writable=True)
    return (*library(_LIBRARY, *_MODULES, "sandbox.relay"), door)


def _sources(mounts: Sequence[Mount]) -> list[Path]:
    found: list[Path] = []
    for mount in mounts:
        if isinstance(mount, Bind):
            found.append(mount.source)
        elif isinstance(mount, Overlay):
            found += [*mount.lowers, *(path for path in (mount.upper, mount.work) if path is not None)]
    return found


def _sealed(mounts: Sequence[Mount]) -> list[str]:
    sealed = [mount.target for mount in mounts if isinstance(mount, Tmpfs) and mount.sealed]
    return [word for target in sealed for word in ("--remount-ro", target)]


def _filtered(file: Callable[[bytes], int]) -> list[str]:
    program = peeping_filter()
    return ["--seccomp", str(file(program))] if program else []


def _links(links: Iterable[tuple[str, str]]) -> list[str]:
    return [word for target, path in links for word in ("--symlink", target, path)]


def _mounted(mounts: Sequence[Mount], staging: Staging, file: Callable[[bytes], int]) -> list[str]:
    return [word for mount in mounts for word in _words(mount, staging, file)]


def _words(mount: Mount, staging: Staging, file: Callable[[bytes], int]) -> list[str]:
    match mount:
        case Bind(source, target, writable):
            return ["--bind" if writable else "--ro-bind", str(staging.place(source)), target]
        case Tmpfs(target, size, mode):
            return ["--perms", f"{mode:04o}", "--size", str(size), "--tmpfs", target]
        case Data(target, data, mode):
            return ["--perms", f"{mode:04o}", "--ro-bind-data", str(file(data)), target]
        case Overlay():
            return _overlay_words(mount, staging)


def _overlay_words(mount: Overlay, staging: Staging) -> list[str]:
    layers = [str(staging.place(path)) for path in mount.lowers]
    sources = [word for layer in layers for word in ("--overlay-src", layer)]
    if mount.mode == "tmp":
        return [*sources, "--tmp-overlay", mount.target]
    if mount.mode == "ro":
        return [*sources, "--ro-overlay", mount.target] if len(layers) > 1 else ["--ro-bind", layers[0], mount.target]
    if mount.upper is None or mount.work is None:
        raise ValueError(f"{mount.target}: a writable overlay needs an upper and a work directory")
    return [*sources, "--overlay", str(staging.place(mount.upper)), str(staging.place(mount.work)), mount.target]


def _zero_ended(words: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)
