"""The gateway's life: it starts at once, ends with its controller, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_wfbench.gateway.api import GatewayLost, GatewayRefused, Labels, OpenRequest, Route
from pytest_wfbench.gateway.client import Gateway, GatewayAddress
from pytest_wfbench.gateway.supervisor import GatewayConfig, RunningGateway, _environment, start_gateway

CONTROLLER = """
import json, sys
from pytest_wfbench.gateway.supervisor import GatewayConfig, start_gateway
gateway = start_gateway(GatewayConfig())
gateway.wait_ready()
print(json.dumps([gateway.pid, gateway.status().pid, str(gateway.address.socket.parents[1])]), flush=True)
sys.stdin.read()
gateway.stop()
"""


@pytest.fixture
def bare() -> Iterator[RunningGateway]:
    """A gateway without LiteLLM."""
    with start_gateway(GatewayConfig(proxy=False)) as running:
        yield running


class TestDeath:
    @pytest.mark.slow
    @pytest.mark.parametrize("victim", ["controller", "gateway"])
    def test_nothing_is_left_after_a_kill(self, victim: str) -> None:
        """Within five seconds of kill -9 of the controller, or of the gateway, no process of it is left."""
        with subprocess.Popen(
            [sys.executable, "-c", CONTROLLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as controller:
            assert controller.stdout is not None
            gateway_pid, proxy_pid, directory = json.loads(controller.stdout.readline())
            processes = [psutil.Process(gateway_pid), psutil.Process(proxy_pid)]
            os.kill({"controller": controller.pid, "gateway": gateway_pid}[victim], signal.SIGKILL)
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline and any(map(_lives, processes)):
                time.sleep(0.05)
            left = [process for process in processes if _lives(process)]
            controller.communicate()
        assert left == []
        assert not Path(directory).exists()

    def test_stop_leaves_nothing(self, bare: RunningGateway) -> None:
        """After `stop` the process is gone and so is its directory; a second stop is harmless."""
        directory = bare.address.socket.parents[1]
        assert bare.stop() == ()
        assert not directory.exists()
        assert not psutil.pid_exists(bare.pid)
        assert bare.stop() == ()


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class TestSecrets:
    @pytest.mark.slow
    def test_no_secret_in_argv_or_environment(self, gateway: RunningGateway) -> None:
        """Tokens and keys travel by pipe: neither process shows one in its arguments or its environment."""
        proxy = gateway.status().pid
        assert proxy is not None
        for pid in (gateway.pid, proxy):
            shown = Path(f"/proc/{pid}/cmdline").read_bytes()
            if os.geteuid() == 0:
                shown += Path(f"/proc/{pid}/environ").read_bytes()
            assert gateway.address.token.encode() not in shown
            assert b"sk-" not in shown

    def test_private_directory(self, bare: RunningGateway) -> None:
        """Control, proxy and tap sockets are the owner's alone; the doors' directory may be passed, not listed."""
        bare.status()
        root = bare.address.socket.parents[1]
        assert (root / "p").stat().st_mode & 0o777 == 0o700
        assert (root / "d").stat().st_mode & 0o777 == 0o711


class TestControl:
    def test_start_returns_at_once(self) -> None:
        """Starting blocks the controller for less than half a second."""
        started = time.monotonic()
        with start_gateway(GatewayConfig(proxy=False)):
            assert time.monotonic() - started < 0.5

    def test_a_wrong_token_is_refused(self, bare: RunningGateway) -> None:
        """The control socket answers only who knows the token."""
        bare.status()
        stranger = Gateway(GatewayAddress(socket=bare.address.socket, token="guess"))
        with pytest.raises(GatewayRefused, match="wrong token"):
            stranger.status()

    def test_the_address_travels_as_json(self, bare: RunningGateway) -> None:
        """A worker reaches the gateway with nothing but the address."""
        bare.status()
        address = GatewayAddress.model_validate_json(bare.address.model_dump_json())
        assert not Gateway(address).status().ready

    def test_a_gateway_that_is_gone(self, bare: RunningGateway) -> None:
        """Asking a gateway that has ended raises GatewayLost."""
        bare.stop()
        with pytest.raises(GatewayLost):
            Gateway(bare.address).status()

    def test_a_proxy_that_cannot_start(self, bare: RunningGateway) -> None:
        """Waiting for a proxy that does not answer ends in time, with a reason."""
        with pytest.raises(GatewayLost, match=r"not ready after 0\.3 s"):
            bare.wait_ready(0.3)

    def test_a_second_sweep_is_refused(self, bare: RunningGateway, tmp_path: Path) -> None:
        """A gateway serves one sweep."""
        bare.begin("one", tmp_path / "usage.jsonl", ())
        with pytest.raises(GatewayRefused, match="begun already"):
            bare.begin("two", tmp_path / "other.jsonl", ())

    def test_a_faulty_cassette_is_refused(self, bare: RunningGateway, tmp_path: Path) -> None:
        """A cassette that does not load is named with file, line and key."""
        (tmp_path / "a.yaml").write_text("model: m\nprovider: anthropic\nturns:\n  - txt: hello\n    usage: {}\n")
        with pytest.raises(GatewayRefused, match=r"a\.yaml:4:.*\[turns\.0\.txt\].*Did you mean text"):
            bare.begin("one", tmp_path / "usage.jsonl", (Route(model="replay/x", cassettes=tmp_path),))

    def test_a_model_without_provider_is_refused(self, bare: RunningGateway, tmp_path: Path) -> None:
        """A model whose provider has no key here is refused before anything runs."""
        with pytest.raises(GatewayRefused, match="no such provider here"):
            bare.begin("one", tmp_path / "usage.jsonl", (Route(model="anthropic/claude-x"),))

    def test_a_door_before_the_sweep_is_refused(self, bare: RunningGateway) -> None:
        """No door opens before the sweep has begun."""
        labels = Labels(task="t", arm="a", session="work", run=1, agent="mini")
        request = OpenRequest(cell_id="c", labels=labels, models=("replay/x",), seconds=10)
        with pytest.raises(GatewayRefused, match="no sweep has begun"):
            bare.open(request)


class TestImports:
    def test_client_is_light(self) -> None:
        """Importing the client imports neither LiteLLM nor an HTTP library nor YAML."""
        code = (
            "import sys, pytest_wfbench.gateway.client, pytest_wfbench.gateway.supervisor;"
            "print([n for n in ('litellm', 'aiohttp', 'httpx', 'yaml') if n in sys.modules])"
        )
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == "[]"


class TestWaysOut:
    def test_this_machine_is_not_behind_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where a proxy leads out, a provider on this machine is reached without it, and what was set stays."""
        for name in ("NO_PROXY", "no_proxy", "http_proxy", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", "http://proxy.example")
        assert _environment()["no_proxy"] == "localhost,127.0.0.1,::1"
        monkeypatch.setenv("NO_PROXY", "corp.example")
        assert _environment()["no_proxy"] == "corp.example,localhost,127.0.0.1,::1"
        monkeypatch.delenv("HTTP_PROXY")
        monkeypatch.delenv("NO_PROXY")
        assert "no_proxy" not in _environment()
