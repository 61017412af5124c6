"""The name ``host`` of ``--wfbench-sandbox``: for diagnosis where there are no namespaces. It is no boundary at all."""

from __future__ import annotations

import marshal
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_wfbench.sandbox import init, relay
from pytest_wfbench.sandbox.bytecode import launching, library
from pytest_wfbench.sandbox.channels import Channels, Story, judge
from pytest_wfbench.sandbox.identity import Identity, choose_identity
from pytest_wfbench.sandbox.interpreter import Interpreter, own_interpreter
from pytest_wfbench.sandbox.layout import CannotLayOut, Layout, lay_out
from pytest_wfbench.sandbox.limits import resource_limits, settle, watch_disk
from pytest_wfbench.sandbox.process import run_process
from pytest_wfbench.sandbox.removal import remove_tree
from pytest_wfbench.sandbox.rootfs import environment
from pytest_wfbench.sandbox.spec import HOME, Bind, Bounds, Command, Finished, Overlay, SandboxName
from pytest_wfbench.sandbox.staging import Staging, plan_staging

_LIBRARY = "lib"
_MODULES = ("sandbox.plain", "sandbox.relay", "sandbox.init", "sandbox.host_init")
_LAUNCH_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_VANISH = 4.0


@dataclass(frozen=True)
class HostSandbox:
    """Runs commands on the host itself, under ``identity``, each with a private directory for its files and its home.

    Its wall clock, output, resource limits and end are those of the real sandbox; nothing else is. ``cancel``, once
    set, ends every command that runs.
    """

    identity: Identity
    interpreter: Interpreter
    cancel: threading.Event | None = None
    name: SandboxName = "host"

    def run(self, command: Command) -> Finished:
        """Run one command to its end, its timeout or its limit, and end all that it started."""
        began = time.monotonic_ns()
        with ExitStack() as stack:
            private = stack.enter_context(_private_directory(self.identity))
            listener = stack.enter_context(closing(relay.listen(0))) if command.gateway else None
            url = f"http://127.0.0.1:{listener.getsockname()[1]}" if listener else None
            try:
                layout = lay_out(command, private / "root", self.identity, url)
            except CannotLayOut as error:
                return Finished(None, b"", str(error).encode(), 0.0, started=False)
            channels = stack.enter_context(Channels())
            stack.callback(channels.let_go, _VANISH)
            passed = () if listener is None else (listener.fileno(),)
            order = self._order(command, layout, channels).plain()
            told: tuple[Any, ...] = (str(private), layout.path(command.cwd), passed[0] if passed else -1, order)
            words = launching(str(private / _LIBRARY), "sandbox.host_init", str(channels.file(marshal.dumps(told))))
            staging = self._staging(command, private)
            watch = watch_disk(command.mounts, command.bounds)
            ended = run_process(
                [*staging.launch_in_place(self.identity), str(self.interpreter.init), *words],
                env=_LAUNCH_ENV,
                timeout=command.timeout,
                stdin=command.stdin,
                stdout_limit=command.stdout_limit,
                keep=command.keep,
                user=None if staging.units else self.identity,
                pass_fds=(*channels.passed, *passed),
                stop=channels.ask_to_stop,
                cancel=command.cancel or self.cancel,
                watch=watch,
                dialogue=command.dialogue,
            )
            channels.let_go(_VANISH)
            story = Story.read(channels)
            return settle(judge(ended, story, began), command.bounds, watch, story)

    def _order(self, command: Command, layout: Layout, channels: Channels) -> init.Order:
        pinned = dict(environment(self.interpreter, {}))
        pinned |= {"HOME": layout.path(HOME), "TMPDIR": str(Path(layout.path(HOME)).parents[1] / "tmp")}
        added = {name: layout.word(value) for name, value in command.env.items()}
        return init.Order(
            argv=layout.argv(command.argv),
            env=tuple((pinned | added).items()),
            limits=_limits(command.bounds, self.identity),
            gateway=str(command.gateway or ""),
            port=0,
            control=channels.control,
            report=channels.report,
        )

    def _staging(self, command: Command, private: Path) -> Staging:
        paths = [private, self.interpreter.init, *self.interpreter.directories]
        paths += [command.gateway] if command.gateway else []
        paths += [mount.source for mount in command.mounts if isinstance(mount, Bind)]
        paths += [lower for mount in command.mounts if isinstance(mount, Overlay) for lower in mount.lowers]
        return plan_staging(paths, self.identity)


def make_host(identity: Identity | None = None, cancel: threading.Event | None = None) -> HostSandbox:
    """Return the sandbox that is none."""
    return HostSandbox(identity or choose_identity(), own_interpreter(), cancel)


@contextmanager
def _private_directory(identity: Identity) -> Iterator[Path]:
    """Give a directory of the identity's that is gone afterwards: an empty ``root``, and the program of the init."""
    path = Path(tempfile.mkdtemp(prefix="wfb-host-", dir="/tmp" if identity.foreign else None))
    try:
        (path / "root").mkdir()
        for module in library(_LIBRARY, *_MODULES):
            (path / module.target).parent.mkdir(parents=True, exist_ok=True)
            (path / module.target).write_bytes(module.data)
        for owned in (path, *path.rglob("*")):
            identity.own(owned)
        yield path
    finally:
        remove_tree(path)


def _limits(bounds: Bounds, identity: Identity) -> tuple[tuple[int, int], ...]:
    """Return the resource limits; on the host, processes are counted with all the others of the user."""
    limits = dict(resource_limits(bounds))
    limits[resource.RLIMIT_NPROC] += sum(_threads(place, identity.uid) for place in Path("/proc").glob("[0-9]*"))
    return tuple(limits.items())


def _threads(place: Path, uid: int) -> int:
    try:
        return len(list((place / "task").iterdir())) if place.stat().st_uid == uid else 0
    except OSError:
        return 0
