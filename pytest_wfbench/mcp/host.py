"""The MCP servers of a session: each listens on a socket in the agent's sandbox, and runs in one of its own."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_wfbench.matrix.task import McpServer
from pytest_wfbench.mcp.conversation import Starter, converse
from pytest_wfbench.sandbox.bytecode import bytecode
from pytest_wfbench.sandbox.identity import Identity, runtime_directory
from pytest_wfbench.sandbox.spec import Bind, Bounds, Command, Data, Finished, Mount, Sandbox

DIRECTORY = "/run/wfbench/mcp"
BRIDGE = f"{DIRECTORY}/bridge.pyc"
# Of all servers of a session together: each is a sandbox with limits of its own, and costs this process 25 descriptors.
CONVERSATIONS = 8
HELLO_SECONDS = 30.0
LEAVE_SECONDS = 8.0
_LINE_LIMIT = 1 << 20
_POLL = 0.2
_HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "pytest-wfbench", "version": "1"},
    },
}


class ServerFailed(Exception):
    """A task's MCP server does not answer, before an agent had anything to do with it; the message says why."""


@dataclass(frozen=True)
class Services:
    """What an agent needs to reach the servers: mounts for its sandbox, and the argv that stands for each by name."""

    mounts: tuple[Mount, ...] = ()
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ground:
    """What the servers run in: a sandbox, the mounts of a read-only start state, bounds, and seconds of life."""

    sandbox: Sandbox
    mounts: tuple[Mount, ...]
    bounds: Bounds
    timeout: float


@dataclass(frozen=True)
class _Talks:
    """The conversations of a session, until it is ``over``; each takes one of the ``places``."""

    places: threading.BoundedSemaphore
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serve(servers: Mapping[str, McpServer], ground: Ground, identity: Identity) -> Iterator[Services]:
    """Have the servers ready, once each has said hello; at the end all of them are gone.

    Every connection has a server process of its own, without network, gateway or key, at most ``CONVERSATIONS`` (or
    two a server, if that is more) at a time.

    Raises:
        ServerFailed: when one does not answer.
        OSError: when the machine cannot start one.
    """
    if not servers:
        yield Services()
        return
    with ExitStack() as stack:
        directory = stack.enter_context(runtime_directory(identity))
        mounts: list[Mount] = [Data(BRIDGE, bytecode("mcp.bridge"))]
        talks = _Talks(threading.BoundedSemaphore(max(CONVERSATIONS, 2 * len(servers))))
        for number, (name, server) in enumerate(servers.items()):
            _greet(name, server, ground)
            path = directory / str(number)
            stack.enter_context(_listening(path, _starter(server, ground, talks.over), ground.sandbox, identity, talks))
            mounts.append(Bind(path, _target(number), writable=True))
        # They all end at once: each may take its time.
        stack.callback(talks.over.set)
        commands = {name: _argv(number) for number, name in enumerate(servers)}
        yield Services(tuple(mounts), commands)


def _target(number: int) -> str:
    return f"{DIRECTORY}/{number}.sock"


def _argv(number: int) -> tuple[str, ...]:
    return ("python3", "-I", "-S", BRIDGE, _target(number))


def _starter(server: McpServer, ground: Ground, stop: threading.Event) -> Starter:
    def start(dialogue: int) -> Command:
        return Command(
            argv=server.command,
            mounts=ground.mounts,
            timeout=ground.timeout,
            env=server.env,
            bounds=ground.bounds,
            dialogue=dialogue,
            cancel=stop,
        )

    return start


@contextmanager
def _listening(path: Path, start: Starter, sandbox: Sandbox, identity: Identity, talks: _Talks) -> Iterator[None]:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        identity.own(path)
        path.chmod(0o600)
        listener.listen(CONVERSATIONS)
        listener.settimeout(_POLL)
        thread = threading.Thread(target=_accept, args=(listener, start, sandbox, talks), daemon=True)
        thread.start()
        try:
            yield
        finally:
            talks.over.set()
            thread.join()


def _accept(listener: socket.socket, start: Starter, sandbox: Sandbox, talks: _Talks) -> None:
    """Give every client a server, as long as there are places, until the session is over; then wait for all to end."""
    begun: list[tuple[threading.Thread, socket.socket]] = []
    while not talks.over.is_set():
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:
            talks.over.wait(_POLL)
            continue
        client.setblocking(True)
        begun = [talk for talk in begun if talk[0].is_alive()]
        if not talks.places.acquire(blocking=False):
            client.close()
            continue
        thread = threading.Thread(target=_talk, args=(client, start, sandbox, talks), daemon=True)
        thread.start()
        begun.append((thread, client))
    for thread, client in begun:
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        thread.join(LEAVE_SECONDS)


def _talk(client: socket.socket, start: Starter, sandbox: Sandbox, talks: _Talks) -> None:
    """What the machine cannot do now is the client's to see: its connection ends."""
    try:
        with closing(client), suppress(OSError):
            converse(client, start, sandbox)
    finally:
        talks.places.release()


def _greet(name: str, server: McpServer, ground: Ground) -> None:
    """Start the server once and let it answer the first request of the protocol. Raises ServerFailed, OSError."""
    ours, theirs = socket.socketpair()
    ended: Future[Finished] = Future()
    stop = threading.Event()
    start = _starter(server, ground, stop)

    def talk() -> None:
        try:
            ended.set_result(converse(theirs, start, ground.sandbox))
        except OSError as error:
            ended.set_exception(error)

    with closing(ours), closing(theirs):
        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        answered = _says_hello(ours)
        with suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        if not answered:
            stop.set()
        thread.join(LEAVE_SECONDS)
        stop.set()
        thread.join(LEAVE_SECONDS)
    if not answered:
        raise ServerFailed(f"the MCP server {name!r} does not answer: {_why(ended)}")


def _says_hello(channel: socket.socket) -> bool:
    channel.settimeout(HELLO_SECONDS)
    said = b""
    try:
        channel.sendall(json.dumps(_HELLO).encode() + b"\n")
        while b"\n" not in said and len(said) < _LINE_LIMIT and (data := channel.recv(1 << 16)):
            said += data
        answer: Any = json.loads(said.partition(b"\n")[0])
    except (OSError, ValueError):
        return False
    return isinstance(answer, dict) and isinstance(answer.get("result"), dict)


def _why(ended: Future[Finished]) -> str:
    if not ended.done():
        return f"nothing within {HELLO_SECONDS:g} s"
    finished = ended.result()
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {finished.status}"
