"""The way from a sandbox's loopback to a unix socket, and nowhere else."""

from __future__ import annotations

import hashlib
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.identity import SOCKET_PATH_LIMIT, runtime_directory
from pytest_wfbench.sandbox.spec import GATEWAY_PORT, Finished

Shell = Callable[..., Finished]
Handler = Callable[[socket.socket], None]
Serve = Callable[[Handler], Path]


@pytest.fixture
def serve(sandbox: Bubblewrap) -> Iterator[Serve]:
    """Serve a unix socket with a handler for each connection, on a thread each."""
    listeners: list[socket.socket] = []
    with runtime_directory(sandbox.identity) as directory:

        def start(handler: Handler) -> Path:
            path = directory / f"{len(listeners)}.sock"
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            sandbox.identity.own(path)
            listener.listen(256)
            listeners.append(listener)
            threading.Thread(target=accept, args=(listener, handler), daemon=True).start()
            return path

        yield start
        for listener in listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def accept(listener: socket.socket, handler: Handler) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=handler, args=(connection,), daemon=True).start()


def echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def answer_after_end(connection: socket.socket) -> None:
    """Answer with the digest of all that came, once the other side has half-closed."""
    digest = hashlib.sha256()
    with connection:
        while data := connection.recv(1 << 16):
            digest.update(data)
        connection.sendall(digest.hexdigest().encode())


def wait(connection: socket.socket) -> None:
    with connection:
        threading.Event().wait(5)


CLIENT = f"""
import socket, threading, hashlib, os, time, sys
def connect():
    return socket.create_connection(("127.0.0.1", {GATEWAY_PORT}))
def read_all(connection):
    data = b""
    while chunk := connection.recv(1 << 16):
        data += chunk
    return data
"""


@pytest.fixture
def client(shell: Shell) -> Callable[..., Finished]:
    """Run a Python client in a sandbox."""
    return lambda source, **options: shell("exec python3 -", stdin=(CLIENT + source).encode(), **options)


class TestRelay:
    def test_listens_before_the_command(self, shell: Shell, serve: Serve) -> None:
        """The port answers the command's very first step."""
        script = f"exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT} && echo hello >&3 && head -n 1 <&3"
        for _ in range(3):
            assert shell(script, gateway=serve(echo)).stdout == b"hello\n"

    def test_half_close(self, client: Callable[..., Finished], serve: Serve) -> None:
        """A client that ends its side still gets the answer to megabytes, whole."""
        ended = client(
            """
data = os.urandom(5 << 20)
connection = connect()
connection.sendall(data)
connection.shutdown(socket.SHUT_WR)
assert read_all(connection).decode() == hashlib.sha256(data).hexdigest()
""",
            gateway=serve(answer_after_end),
        )
        assert ended.ok, ended.stderr

    def test_server_that_ends_first(self, client: Callable[..., Finished], serve: Serve) -> None:
        """A server that sends megabytes and closes is read to its last byte by a slow client."""

        def pour(connection: socket.socket) -> None:
            with connection:
                connection.sendall(b"x" * (3 << 20))

        ended = client("c = connect(); time.sleep(0.3); assert len(read_all(c)) == 3 << 20", gateway=serve(pour))
        assert ended.ok, ended.stderr

    def test_more_connections_than_descriptors(self, client: Callable[..., Finished], serve: Serve) -> None:
        """Whoever opens more connections than the first process has descriptors loses those alone."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            source = "many = [connect() for _ in range(200)]; time.sleep(0.5); print('alive')"
            ended = client(source, gateway=serve(wait))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert (ended.status, ended.stdout) == (0, b"alive\n"), ended.stderr

    def test_many_connections(self, client: Callable[..., Finished], serve: Serve) -> None:
        """Many connections at once do not mix their bytes."""
        ended = client(
            """
def talk(number):
    data = bytes([number]) * 200_000
    connection = connect()
    sender = threading.Thread(target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR)))
    sender.start()
    good[number] = read_all(connection) == data
good = {}
threads = [threading.Thread(target=talk, args=(number,)) for number in range(60)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(good) == 60 and all(good.values()), good
""",
            gateway=serve(echo),
        )
        assert ended.ok, ended.stderr

    def test_streams_are_not_held_back(self, client: Callable[..., Finished], serve: Serve) -> None:
        """Small pieces arrive one by one, as they are sent."""
        ended = client(
            """
connection = connect()
began = time.monotonic()
for number in range(50):
    connection.sendall(b"%d" % (number % 10))
    assert connection.recv(100) == b"%d" % (number % 10)
assert time.monotonic() - began < 0.5, time.monotonic() - began
""",
            gateway=serve(echo),
        )
        assert ended.ok, ended.stderr

    def test_client_that_vanishes(self, client: Callable[..., Finished], serve: Serve) -> None:
        """A client that breaks off ends the connection behind it, and others go on."""
        closed = threading.Event()

        def watch(connection: socket.socket) -> None:
            with connection:
                while connection.recv(1 << 16):
                    pass
            closed.set()

        ended = client("c = connect(); c.sendall(b'x'); c.close(); time.sleep(0.5)", gateway=serve(watch))
        assert ended.ok
        assert closed.is_set()

    def test_server_that_is_gone(self, client: Callable[..., Finished], serve: Serve, tmp_path: Path) -> None:
        """With nobody behind the socket a connection is closed, not left to hang."""
        path = serve(echo).with_name("dead.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
        ended = client(
            """
try:
    assert read_all(connect()) == b""
except ConnectionError:
    pass
""",
            gateway=path,
        )
        assert ended.ok, ended.stderr

    def test_idle_relay_costs_nothing(self, client: Callable[..., Finished], serve: Serve) -> None:
        """An open connection with nothing to say does not keep the relay busy, not even when half-closed."""
        ended = client(
            """
one, two = connect(), connect()
two.shutdown(socket.SHUT_WR)
def ticks():
    return sum(map(int, open("/proc/1/stat").read().rpartition(")")[2].split()[11:13]))
before = ticks()
time.sleep(0.6)
assert ticks() - before <= 5
""",
            gateway=serve(wait),
        )
        assert ended.ok, ended.stderr

    def test_slow_client(self, client: Callable[..., Finished], serve: Serve) -> None:
        """A client that does not read holds the server back instead of filling the relay's memory."""

        def pour(connection: socket.socket) -> None:
            with connection:
                connection.sendall(b"x" * (80 << 20))

        ended = client(
            """
connection = connect()
time.sleep(0.7)
pages = int(open("/proc/1/statm").read().split()[1])
assert pages * 4096 < 40 << 20, pages
assert sum(iter(lambda: len(connection.recv(1 << 16)), 0)) == 80 << 20
""",
            gateway=serve(pour),
        )
        assert ended.ok, ended.stderr

    def test_no_gateway_no_port(self, shell: Shell) -> None:
        """Without a gateway socket nothing listens, and there is no socket to speak to."""
        ended = shell(f"ls -A /run; exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT}")
        assert ended.status == 1
        assert ended.stdout == b""
        assert b"refused" in ended.stderr


class TestRuntimeDirectory:
    def test_paths_are_short(self, sandbox: Bubblewrap) -> None:
        """A socket in the runtime directory has a path that can be bound, and the directory is gone afterwards."""
        with runtime_directory(sandbox.identity) as directory:
            assert len(str(directory / ("x" * 64))) <= SOCKET_PATH_LIMIT
            (directory / "file").touch()
        assert not directory.exists()
