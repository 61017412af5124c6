"""Real MCP servers and clients, each in a real sandbox."""

from __future__ import annotations

import json
import threading
import time

import psutil
import pytest

from pytest_wfbench.matrix.task import McpServer
from pytest_wfbench.mcp.host import CONVERSATIONS, Ground, ServerFailed, serve
from pytest_wfbench.sandbox.bubblewrap import Bubblewrap
from pytest_wfbench.sandbox.spec import Command, Finished, Tmpfs
from tests.mcp.conftest import Ask

SHELF = McpServer(command=("python3", "server.py"), env={"SHELF": "oak"})
pytestmark = pytest.mark.slow


def answers(ended: Finished) -> dict[str, str]:
    assert ended.ok, ended.stderr.decode()
    return dict(json.loads(line) for line in ended.stdout.splitlines())


def below() -> set[int]:
    """Every process that this one has started."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


class TestServing:
    def test_tools(self, ground: Ground, ask: Ask, sandbox: Bubblewrap) -> None:
        """A server answers from a read-only start state, with no network, no gateway and no key, and its own env."""
        before, threads = below(), set(threading.enumerate())
        with serve({"shelf": SHELF}, ground, sandbox.identity) as services:
            told = answers(
                ask(services, "shelf", ("read", {"name": "notes.txt"}), ("write", {"name": "x"}), ("around", {}))
            )
        assert told["read"] == "as it was at the start\n"
        assert told["write"] == "Read-only file system"
        assert told["around"] == "['lo'] [] False 1000 oak"
        assert below() == before
        assert set(threading.enumerate()) <= threads

    def test_again_and_at_once(self, ground: Ground, ask: Ask, sandbox: Bubblewrap) -> None:
        """Every connection has a server of its own; what one is asked disturbs no other."""
        with serve({"shelf": SHELF}, ground, sandbox.identity) as services:
            for _ in range(2):
                assert answers(ask(services, "shelf", ("read", {"name": "notes.txt"})))["read"].startswith("as it was")

    def test_rude_client(self, ground: Ground, ask: Ask, sandbox: Bubblewrap) -> None:
        """A client that says nothing, and one that is killed, leave nothing behind when the session is over."""
        before = below()
        with serve({"shelf": SHELF}, ground, sandbox.identity) as services:
            silent = ask(services, "shelf", ("around", {}), timeout=0.3)
            assert silent.timed_out
            began = time.monotonic()
        assert time.monotonic() - began < 10
        assert below() == before

    def test_no_end_of_clients(self, ground: Ground, sandbox: Bubblewrap) -> None:
        """An agent has few servers at a time, whatever it asks for: each has its own limits, and takes descriptors."""
        client = (
            "import socket,sys\n"
            "def answered(s):\n"
            "    s.settimeout(20)\n"
            "    try:\n"
            "        return bool(s.recv(1))\n"
            "    except ConnectionError:\n"
            "        return False\n"
            "def connected(path):\n"
            "    s=socket.socket(socket.AF_UNIX); s.connect(path); return s\n"
            "print(sum(map(answered, [connected(path) for path in sys.argv[1:] for _ in range(12)])))\n"
        )
        says = McpServer(command=("sh", "-c", "echo '{\"result\": {}}'; cat"))
        with serve({"one": says, "two": says}, ground, sandbox.identity) as services:
            argv = ("python3", "-c", client, *(command[-1] for command in services.commands.values()))
            ended = sandbox.run(Command(argv, (Tmpfs("/workspace", 1 << 20), *services.mounts), 60.0))
        assert ended.stdout == b"%d\n" % CONVERSATIONS, ended.stderr

    def test_stubborn_servers(self, ground: Ground, sandbox: Bubblewrap) -> None:
        """Servers that ignore their end are ended together, not one after the other."""
        script = (
            "read -r line; echo '{\"result\": {}}'; test \"$line\" = stay || exit 0; trap '' TERM; sleep 60; sleep 60"
        )
        stubborn = McpServer(command=("sh", "-c", script))
        client = (
            "import socket,sys\n"
            "for path in sys.argv[1:]:\n"
            "    s=socket.socket(socket.AF_UNIX); s.connect(path); s.sendall(b'stay\\n'); s.recv(1)\n"
        )
        with serve(dict.fromkeys(("one", "two", "three"), stubborn), ground, sandbox.identity) as services:
            argv = ("python3", "-c", client, *(command[-1] for command in services.commands.values()))
            assert sandbox.run(Command(argv, (Tmpfs("/workspace", 1 << 20), *services.mounts), 60.0)).ok
            began = time.monotonic()
        assert time.monotonic() - began < 10

    def test_no_server(self, sandbox: Bubblewrap, ask: Ask, ground: Ground) -> None:
        """Where no task has servers nothing is started and nothing mounted."""
        with serve({}, ground, sandbox.identity) as services:
            assert (services.mounts, services.commands) == ((), {})

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            (("python3", "absent.py"), "absent.py"),
            (("no-such-program",), "no-such-program"),
            (("sh", "-c", "echo hello; echo it broke >&2"), "it broke"),
            (("sh", "-c", "echo '{}'; sleep 60"), "does not answer"),
        ],
    )
    def test_broken_server(self, ground: Ground, sandbox: Bubblewrap, command: tuple[str, ...], said: str) -> None:
        """A server that does not answer the protocol's first request is named with what it said, before any agent."""
        before = below()
        with pytest.raises(ServerFailed, match=said), serve({"shelf": McpServer(command=command)}, ground,
                                                            sandbox.identity):  # fmt: skip
            raise AssertionError
        assert below() == before

    def test_no_descriptor_passes(self, ground: Ground, ask: Ask, sandbox: Bubblewrap) -> None:
        """The agent's end is a socket of the harness, not of the server: a descriptor sent over it goes nowhere."""
        script = (
            "import socket,sys,array,os\n"
            "s=socket.socket(fileno=os.dup(0)); s.settimeout(10)\n"
            "data,anc,_,_=s.recvmsg(100000, 1000)\n"
            "sys.stdout.write('{\"result\": {}}\\n'); sys.stdout.flush()\n"
            "data,anc,_,_=s.recvmsg(100000, 1000)\n"
            "sys.stdout.write('%d\\n' % len(anc)); sys.stdout.flush()\n"
        )
        server = McpServer(command=("python3", "-c", script))
        client = (
            "import socket,array,os,sys\n"
            "s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'hello\\n'); s.recv(100)\n"
            "s.sendmsg([b'take this'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])\n"
            "print(s.recv(100).decode().strip())\n"
        )
        with serve({"shelf": server}, ground, sandbox.identity) as services:
            argv = ("python3", "-c", client, services.commands["shelf"][-1])
            ended = sandbox.run(Command(argv, (Tmpfs("/workspace", 1 << 20), *services.mounts), 30.0))
        assert ended.stdout == b"0\n", ended.stderr
