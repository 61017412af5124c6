"""The sandbox: bubblewrap with namespaces of its own, never root, no network, an allowlist of what is visible."""

from __future__ import annotations

import json
import marshal
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pytest_wfbench.sandbox import relay
from pytest_wfbench.sandbox.binary import Binary, find_bubblewrap
from pytest_wfbench.sandbox.identity import Identity, choose_identity
from pytest_wfbench.sandbox.interpreter import Interpreter, own_interpreter
from pytest_wfbench.sandbox.limits import resource_limits
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

GATEWAY_SOCKET = "/run/wfbench/gateway.sock"
_INIT = "/run/wfbench/init.py"
_NAMESPACES = (
    "--unshare-user", "--uid", str(UID), "--gid", str(UID), "--unshare-pid", "--unshare-ipc", "--unshare-uts",
    "--unshare-cgroup-try", "--unshare-net", "--hostname", "sandbox", "--die-with-parent", "--new-session",
    "--as-pid-1", "--cap-drop", "ALL", "--disable-userns", "--clearenv", "--proc", "/proc", "--ro-bind", "/proc/sys",
    "/proc/sys", "--dev", "/dev",
)  # fmt: skip
_SEALED = ("--remount-ro", "/dev", "--remount-ro", "/")
_LAUNCH_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_VANISH = 2.0


@dataclass(frozen=True)
class Bubblewrap:
    """A sandbox whose commands run under ``identity`` with ``binary``, and see the harness's own ``interpreter``.

    ``cancel``, once set, ends every command that runs.
    """

    identity: Identity
    binary: Binary
    interpreter: Interpreter
    cancel: threading.Event | None = None
    name: SandboxName = "bwrap"

    def run(self, command: Command) -> Finished:
        """Run one command to its end, its timeout or its limit, and leave nothing of it behind."""
        began = time.monotonic_ns()
        mounts = (*system_mounts(self.interpreter, command.bounds), *_of_relay(command), *command.mounts)
        staging = plan_staging([self.binary.path, *_sources(mounts)], self.identity)
        with _Channels() as channels:
            listed = [*_NAMESPACES, *_links(), *_mounted(mounts, staging, channels.file), *_SEALED]
            listed += ["--chdir", command.cwd, "--json-status-fd", str(channels.status)]
            order = channels.file(marshal.dumps(tuple(self._order(command, channels))))
            init = [str(self.interpreter.init), "-I", "-S", _INIT, str(order)]
            bubblewrap = [str(staging.place(self.binary.path)), "--args", str(channels.file(_zero_ended(listed)))]
            ended = run_process(
                [*staging.launch(self.identity), *bubblewrap, "--", *init],
                env=_LAUNCH_ENV,
                timeout=command.timeout,
                stdin=command.stdin,
                stdout_limit=command.stdout_limit,
                keep=command.keep,
                user=None if staging.units else self.identity,
                pass_fds=channels.passed,
                stop=channels.ask_to_stop,
                cancel=self.cancel,
            )
            return _judge(ended, _Story.read(channels), began)

    def _order(self, command: Command, channels: _Channels) -> relay.Order:
        return relay.Order(
            argv=command.argv,
            env=environment(self.interpreter, command.env),
            limits=resource_limits(command.bounds),
            gateway=GATEWAY_SOCKET if command.gateway is not None else "",
            port=GATEWAY_PORT,
            control=channels.control,
            report=channels.report,
        )


def make_bubblewrap(identity: Identity | None = None, cancel: threading.Event | None = None) -> Bubblewrap:
    """Return the sandbox of this machine.

    Raises:
        BubblewrapMissing: with the remedy.
    """
    return Bubblewrap(identity or choose_identity(), find_bubblewrap(), own_interpreter(), cancel)


class _Channels:
    """The descriptors that one sandbox is started with; all are closed at the end, and none is left in a child."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._passed: list[int] = []
        self.control, self._stop = self._pipe()
        self._status_read, self.status = self._pipe()
        self._report_read, self.report = self._pipe()
        self._passed += [self.control, self.status, self.report]

    def __enter__(self) -> _Channels:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def passed(self) -> Sequence[int]:
        return self._passed

    def file(self, data: bytes) -> int:
        """Return a descriptor from which the child reads the bytes."""
        descriptor = os.memfd_create("wfbench")
        self._stack.callback(os.close, descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self._passed.append(descriptor)
        return descriptor

    def ask_to_stop(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self._stop, relay.STOP)

    def read_status(self) -> bytes:
        return _read_all(self._status_read)

    def read_report(self) -> bytes:
        return _read_all(self._report_read)

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        for end in ends:
            self._stack.callback(os.close, end)
        return ends


@dataclass(frozen=True)
class _Story:
    """What bubblewrap and the init said: times in nanoseconds, the init's process id on the host."""

    pid: int | None
    status: int | None
    run: int | None
    end: int | None
    leftovers: bool
    failure: str | None

    @classmethod
    def read(cls, channels: _Channels) -> _Story:
        documents: dict[str, int] = {}
        for line in channels.read_status().splitlines():
            documents |= json.loads(line)
        lines = dict(line.split(" ", 1) for line in channels.read_report().decode().splitlines())
        return cls(
            pid=documents.get("child-pid"),
            status=documents.get("exit-code"),
            run=_number(lines.get("run")),
            end=_number(lines.get("end")),
            leftovers=lines.get("left") == "1",
            failure=lines.get("fail"),
        )


def _judge(ended: Finished, story: _Story, began: int) -> Finished:
    """Join how the process ended with what was said from inside."""
    if story.pid is not None and story.status is None:
        _await_death(story.pid)
    if story.run is None:
        cause = ended.stderr or (story.failure or "").encode()
        return replace(ended, status=None, started=False, stderr=cause, timed_out=False)
    finish = story.end or time.monotonic_ns()
    return replace(
        ended,
        seconds=(finish - story.run) / 1e9,
        setup_seconds=(story.run - began) / 1e9,
        leftovers=story.leftovers,
    )


def _await_death(pid: int) -> None:
    """Wait until a killed init is gone with all its processes: they may still write to the workspace."""
    until = time.monotonic() + _VANISH
    while time.monotonic() < until and _lives(pid):
        time.sleep(0.005)


def _lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return text.rpartition(b")")[2].split()[:1] != [b"Z"]


def _of_relay(command: Command) -> tuple[Mount, ...]:
    program = Data(_INIT, _init_source())
    return (program,) if command.gateway is None else (program, Bind(command.gateway, GATEWAY_SOCKET, writable=True))


def _sources(mounts: Sequence[Mount]) -> list[Path]:
    found: list[Path] = []
    for mount in mounts:
        if isinstance(mount, Bind):
            found.append(mount.source)
        elif isinstance(mount, Overlay):
            found += [*mount.lowers, *(path for path in (mount.upper, mount.work) if path is not None)]
    return found


def _links() -> list[str]:
    return [word for target, path in system_links() for word in ("--symlink", target, path)]


def _mounted(mounts: Sequence[Mount], staging: Staging, file: Callable[[bytes], int]) -> list[str]:
    return [word for mount in mounts for word in _words(mount, staging, file)]


def _words(mount: Mount, staging: Staging, file: Callable[[bytes], int]) -> list[str]:
    match mount:
        case Bind(source, target, writable):
            return ["--bind" if writable else "--ro-bind", str(staging.place(source)), target]
        case Tmpfs(target, size):
            return ["--size", str(size), "--tmpfs", target]
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


def _read_all(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    with suppress(BlockingIOError):
        return os.read(descriptor, 1 << 16)
    return b""


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None


@cache
def _init_source() -> bytes:
    return Path(relay.__file__).read_bytes()
