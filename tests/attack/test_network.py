"""A sandbox's ways out: there is none, from no phase of a cell."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.attack.raid import Raid, Raiders
from tests.suite import CASES, CHECK

pytestmark = pytest.mark.slow

PROBE = Path(__file__).with_name("network.py")
LINGER, STRAY = "wfbench-lingers", "replay/stray"
# Asks the gateway while its session lasts, and again when the agent has been gone for longer than an init lingers.
STRAYING = r"""
import http.client, os, time

def ask(when):
    gateway = http.client.HTTPConnection("127.0.0.1", 4000, timeout=5)
    try:
        gateway.request("GET", "/v1/models")
        answer = gateway.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        answer = type(error).__name__
    with open("/workspace/loot.txt", "a") as file:
        file.write(f"{when} {answer}\n")

def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])

agent = os.getpid()
while parent(agent) > 1:
    agent = parent(agent)
ask("during")
if os.fork():
    os._exit(0)
os.setsid()
for descriptor in range(3):
    os.close(descriptor)
while os.path.exists(f"/proc/{agent}"):
    time.sleep(0.01)
for _ in range(60):
    time.sleep(1)
    ask("after")
"""
USED = "{ordinary_input: 9, cache_read_input: 0, cache_write_input: 0, output: 1}"
CASSETTE = f"""\
model: claude-sonnet-4-5-20250929
provider: anthropic
turns:
  - tools: [{{name: bash, input: {{command: python3 stray.py {LINGER}; echo done > a.txt}}}}]
    usage: {USED}
  - tools: [{{name: bash, input: {{command: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT}}}}]
    usage: {USED}
"""


@dataclass
class Host:
    """Listeners of this machine outside the sandbox, and who came."""

    told: dict[str, list[object]]
    came: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """Listen on every address of this machine, on an abstract name and at a path."""
    abstract = f"wfbench-attack-{id(object())}"
    tcp, udp, named = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    tcp.bind(("0.0.0.0", 0))
    udp.bind(("0.0.0.0", tcp.getsockname()[1]))
    named.bind("\0" + abstract)
    hosts = [
        address.address
        for each in psutil.net_if_addrs().values()
        for address in each
        if address.family == socket.AF_INET
    ]
    made = Host({"hosts": [*hosts], "ports": [tcp.getsockname()[1]], "abstract": [abstract], "away": [], "names": []})

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                if listener is udp:
                    listener.recv(9)
                else:
                    listener.accept()[0].close()
                made.came.append(str(listener))

    for listener in (tcp, named):
        listener.listen()
    for listener in (tcp, udp, named):
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
    yield made
    for listener in (tcp, udp, named):
        listener.close()


def probing(host: Host) -> str:
    """A shell command that runs the probe and succeeds if it found nothing."""
    away = {"away": ["10.0.0.1", "169.254.169.254"], "names": ["example.com", "host.docker.internal", "_gateway"]}
    return f"python3 /workspace/network.py {shlex.quote(json.dumps(host.told | away))}"


@pytest.fixture(scope="module")
def ended(raid: Callable[[str, Raiders], Raid], host: Host) -> Raid:
    """One sweep in which session, setup, verify and oracle look for a way out."""
    quiet = f'test "$({probing(host)})" = DONE'
    cases = CASES.replace("verify: grep -q done a.txt", f"setup: {json.dumps(quiet)}\n  verify: {json.dumps(quiet)}")
    scripts = {"probe": f"{probing(host)} > loot.txt 2>&1; echo done > a.txt\n"}
    files = {
        "cases/tiny.cases.yaml": cases,
        "cases/tiny/network.py": PROBE.read_text(),
        "cases/tiny/stray.py": STRAYING,
        "cases/cassettes/stray/a.yaml": CASSETTE,
        "oracles/check.sh": CHECK + quiet + "\n",
    }
    return raid("network", Raiders(scripts, files=files, arguments=[f"--wfbench-subject=mini:{STRAY}"]))


class TestNoWayOut:
    def test_of_a_session(self, ended: Raid, host: Host) -> None:
        """No interface, route, address, name, socket family, socket or device leads out of a session's sandbox."""
        assert ended.loot("probe") == ["DONE"], ended.output[-2000:]
        assert host.came == []

    def test_of_setup_verify_and_oracle(self, ended: Raid) -> None:
        """Setup, verify and oracle have no way out either, and no gateway: each fails if it finds one."""
        row = ended.rows()["probe"]
        assert (row["outcome"], row["resolved"]) == ("pass", True), json.dumps(row)

    def test_of_what_outlives_a_session(self, ended: Raid) -> None:
        """A process that leaves its session had the gateway while that lasted, and is gone with its sandbox."""
        assert ended.rows()[STRAY]["requests"] == 2, ended.output[-2000:]
        assert ended.loot(STRAY) == ["during 403"]
        assert not [p for p in psutil.process_iter(["cmdline"]) if LINGER in (p.info["cmdline"] or [])]

    def test_the_probe_finds_what_is_there(self, host: Host, capfd: pytest.CaptureFixture[str]) -> None:
        """Outside a sandbox the same probe finds the machine's listeners: it is able to fail."""
        found = subprocess.run(
            [sys.executable, str(PROBE), json.dumps(host.told)], capture_output=True, text=True, timeout=120
        )
        port, name = host.told["ports"][0], host.told["abstract"][0]
        assert {f"FOUND tcp 127.0.0.1 {port}", f"FOUND abstract {name}"} <= set(found.stdout.splitlines()), found
        host.came.clear()
